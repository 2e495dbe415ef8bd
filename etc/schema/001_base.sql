-- 001_base.sql - tables and views of mailherd.
--
-- Applied by `mailherdctl migrate`, which has already created the schema
-- `mailherd`, made it the search_path and opened a transaction.
--
-- What a message is never changes and lies in the wide table `message`; where
-- it is and how it is marked changes all the time and lies in the narrow
-- `message_state` (updates there are HOT: a flag costs 240 bytes of WAL
-- instead of several kilobytes).  The view `messages` is both.  Full text has
-- a table of its own for the same reason.
--
-- Few foreign keys: rows of the ingest path are written by the functions of
-- 002_write.sql under the account's fence and removed by purge(), nowhere
-- else; a check per row would cost a quarter of the ingest rate.

-- --- users and accounts -----------------------------------------------------

CREATE TABLE users (
	id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
	email           text NOT NULL,
	name            text NOT NULL DEFAULT '',
	quota_bytes     bigint NOT NULL DEFAULT 5368709120,
	used_bytes      bigint NOT NULL DEFAULT 0,
	last_active_at  timestamptz,
	created_at      timestamptz NOT NULL DEFAULT now(),
	deleted_at      timestamptz
);
CREATE UNIQUE INDEX users_email ON users (lower(email))
	WHERE deleted_at IS NULL;

-- An address as a number, as store/thread.c makes it.
CREATE FUNCTION address_key(address text) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
	SELECT ('x' || left(encode(sha256(convert_to(
	    lower(address COLLATE "C"), 'UTF8')), 'hex'), 8))::bit(32)::integer
$$;

CREATE TABLE accounts (
	id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
	user_id         uuid NOT NULL REFERENCES users,
	email           text NOT NULL,
	name            text NOT NULL DEFAULT '',
	color           text NOT NULL DEFAULT '',
	signature_html  text NOT NULL DEFAULT '',
	state           text NOT NULL DEFAULT 'new' CHECK (state IN ('new',
	                'bootstrapping', 'live', 'disabled', 'error', 'deleted')),
	state_reason    text NOT NULL DEFAULT '',
	state_since     timestamptz NOT NULL DEFAULT now(),
	imap_host       text NOT NULL,
	imap_port       integer NOT NULL CHECK (imap_port BETWEEN 1 AND 65535),
	imap_tls        text NOT NULL
	                CHECK (imap_tls IN ('none', 'starttls', 'tls')),
	imap_login      text NOT NULL,
	smtp_host       text NOT NULL DEFAULT '',
	smtp_port       integer NOT NULL DEFAULT 0
	                CHECK (smtp_port BETWEEN 0 AND 65535),
	smtp_tls        text NOT NULL DEFAULT 'tls'
	                CHECK (smtp_tls IN ('none', 'starttls', 'tls')),
	smtp_login      text NOT NULL DEFAULT '',
	auth            text NOT NULL DEFAULT 'password',
	-- sealed by mailherdctl, each for one server, port, TLS mode and login
	secret          bytea,
	smtp_secret     bytea,
	last_mail_at    timestamptz,
	last_sync_at    timestamptz,
	bootstrapped_at timestamptz,  -- first became live
	last_error      text NOT NULL DEFAULT '',
	-- address_key() of the account, and of whom the mail in Sent is from
	own_keys        integer[] GENERATED ALWAYS AS (ARRAY[address_key(email),
	                address_key(imap_login)]) STORED,
	aliases         integer[] NOT NULL DEFAULT '{}',
	auth_failures   integer NOT NULL DEFAULT 0,
	next_try_at     timestamptz,
	created_at      timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 70);
CREATE INDEX accounts_user ON accounts (user_id);
CREATE INDEX accounts_email ON accounts (lower(email));
CREATE INDEX accounts_state ON accounts (state);

-- Who may write an account's data.  Every writing transaction locks its row
-- first (R-LEASE-6), so it is narrow and half empty: updates stay HOT.
CREATE TABLE account_fence (
	account_id      uuid PRIMARY KEY REFERENCES accounts ON DELETE CASCADE,
	epoch           bigint NOT NULL DEFAULT 0,
	owner           text NOT NULL DEFAULT '',
	-- texts that came since the account was last put into search_due
	unmerged        integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- --- folders ----------------------------------------------------------------

CREATE TABLE mailbox (
	id              bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
	account_id      uuid NOT NULL,
	path            text NOT NULL,
	-- the name as the server writes it: any bytes, and longer than an index
	-- takes
	wire            bytea NOT NULL,
	delimiter       text NOT NULL DEFAULT '',
	role            text,
	is_selectable   boolean NOT NULL DEFAULT true,
	-- the cursor
	uidvalidity     bigint NOT NULL DEFAULT 0,
	uidnext         bigint NOT NULL DEFAULT 0,
	highestmodseq   bigint NOT NULL DEFAULT 0,
	backfill_below  bigint NOT NULL DEFAULT 0,
	server_messages bigint NOT NULL DEFAULT 0,
	flag_scan_uid   bigint NOT NULL DEFAULT 0,
	generation      bigint NOT NULL DEFAULT 0,
	-- rows with a UID that are not deleted
	messages        bigint NOT NULL DEFAULT 0,
	is_remapping    boolean NOT NULL DEFAULT false,
	missing_since   timestamptz,
	parked_until    timestamptz,
	park_reason     text NOT NULL DEFAULT '',
	park_failures   integer NOT NULL DEFAULT 0,
	-- why its UIDs may mean other messages now: all are compared
	doubt           text NOT NULL DEFAULT '',
	-- MAILBOXID (RFC 8474): stays with a folder that is renamed
	object_id       text,
	-- what the server tells is not believed until then; each time longer
	no_condstore    text NOT NULL DEFAULT '',
	-- messages that the server counts and a full comparison never saw
	unseen          bigint NOT NULL DEFAULT 0,
	no_condstore_until timestamptz,
	no_condstore_times integer NOT NULL DEFAULT 0,
	no_uidnext_until timestamptz,
	no_uidnext_times integer NOT NULL DEFAULT 0,
	verified_at     timestamptz NOT NULL DEFAULT now(),
	last_poll_at    timestamptz,
	created_at      timestamptz NOT NULL DEFAULT now(),
	deleted_at      timestamptz,
	-- deleted, and not all of its messages are yet
	is_emptying     boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX mailbox_wire ON mailbox (account_id, sha256(wire))
	WHERE deleted_at IS NULL;
CREATE INDEX mailbox_account ON mailbox (account_id);
CREATE INDEX mailbox_emptying ON mailbox (deleted_at) WHERE is_emptying;

CREATE VIEW mailboxes AS
SELECT id, account_id, path, delimiter, role,
	nullif(uidvalidity, 0) AS uidvalidity, nullif(uidnext, 0) AS uidnext,
	nullif(highestmodseq, 0) AS highestmodseq, parked_until, park_reason,
	messages, is_selectable, is_remapping, backfill_below, server_messages,
	missing_since, CASE WHEN no_condstore_until > now() THEN no_condstore
	ELSE '' END AS no_condstore, last_poll_at, wire, doubt,
	no_condstore_until, no_uidnext_until
FROM mailbox
WHERE deleted_at IS NULL;

-- --- blobs ------------------------------------------------------------------

-- Whose the blob directory is; the same id stands in its file store-id, and
-- without that nothing is written to it: it may not be mounted, or belong to
-- another database.
CREATE TABLE blob_store (
	is_one          boolean PRIMARY KEY DEFAULT true CHECK (is_one),
	id              uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO blob_store DEFAULT VALUES;

-- The row is the only proof that a blob exists.
CREATE TABLE blob (
	id              bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY
	                (CACHE 32),
	"offset"        bigint NOT NULL,
	stored          bigint NOT NULL,
	size            bigint NOT NULL,
	segment         integer NOT NULL,  -- 0: a file named by the digest
	codec           smallint NOT NULL,
	refs            integer NOT NULL,
	digest          bytea NOT NULL UNIQUE
);
-- To list one segment without a look at all the others.
CREATE INDEX blob_segment ON blob (segment, id);
-- Bytes in segments that no row names, for the garbage collection: counted once,
-- when the file was so large (segment_count()), then kept up to date by what is
-- deleted.
CREATE TABLE segment (
	id              integer PRIMARY KEY,
	dead            bigint NOT NULL DEFAULT 0,
	counted_size    bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
-- Files of their own whose row was deleted.
CREATE TABLE blob_file_dead (
	digest          bytea PRIMARY KEY,
	since           timestamptz NOT NULL DEFAULT now()
);

-- --- messages ---------------------------------------------------------------

CREATE SEQUENCE message_id CACHE 32;
CREATE SEQUENCE thread_id CACHE 32;

CREATE TABLE message (
	id              bigint PRIMARY KEY,
	thread_id       bigint NOT NULL,
	blob_id         bigint,
	size            bigint NOT NULL,
	internal_date   timestamptz NOT NULL,
	sent_at         timestamptz NOT NULL,
	-- hash of message_id (store/names.c); NULL: the message has none
	mid             bigint,
	account_id      uuid NOT NULL,
	parse_state     smallint NOT NULL,
	has_attachments boolean NOT NULL,
	message_id      text,
	in_reply_to     text,
	refs            text,
	subject         text,
	from_addr       text,
	from_name       text,
	snippet         text NOT NULL,
	parse_reason    text NOT NULL,
	recipients      jsonb NOT NULL
) WITH (toast_tuple_target = 4080);
CREATE INDEX message_account ON message (account_id, internal_date);
CREATE INDEX message_thread ON message (thread_id, internal_date);

CREATE TABLE message_state (
	message_id      bigint PRIMARY KEY,
	mailbox_id      bigint NOT NULL,
	uid             bigint,  -- NULL: the folder's UIDs are void, not yet found
	blob_id         bigint,
	mid             bigint,
	modseq          bigint NOT NULL DEFAULT 0,
	deleted_at      timestamptz,
	-- since when the message has no certain place on the server: expunged,
	-- UIDVALIDITY changed.  It may turn up elsewhere and then keeps its id
	-- (R-SYNC-5, R-SYNC-6).
	lost_at         timestamptz,
	-- since when there are two of these bytes: a copy, or a move of which
	-- the old place has not been seen to go
	twin_since      timestamptz,
	flags           integer NOT NULL,
	account_id      uuid NOT NULL,
	keywords        text[] NOT NULL,
	CONSTRAINT message_state_uid UNIQUE (mailbox_id, uid)
) WITH (fillfactor = 80);
CREATE INDEX message_state_lost_blob ON message_state (account_id, blob_id)
	WHERE lost_at IS NOT NULL;
CREATE INDEX message_state_lost_mid ON message_state (account_id, mid)
	WHERE lost_at IS NOT NULL;
CREATE INDEX message_state_twin ON message_state (account_id, blob_id)
	WHERE twin_since IS NOT NULL;
-- Those that wait to be found again after a change of UIDVALIDITY.
CREATE INDEX message_state_void ON message_state (mailbox_id, message_id)
	WHERE uid IS NULL AND deleted_at IS NULL;
CREATE INDEX message_state_deleted ON message_state (deleted_at)
	WHERE deleted_at IS NOT NULL;

CREATE VIEW messages AS
SELECT m.id, m.account_id, s.mailbox_id, s.uid, b.digest AS blob, m.size,
	m.internal_date, m.sent_at, m.message_id, m.in_reply_to, m.refs,
	m.subject, m.from_addr, m.from_name, m.recipients,
	s.flags & 1 <> 0 AS seen, s.flags & 2 <> 0 AS flagged,
	s.flags & 4 <> 0 AS answered, s.flags & 8 <> 0 AS draft,
	s.flags & 16 <> 0 AS marked_deleted, s.keywords, s.modseq, m.thread_id,
	m.snippet, m.has_attachments,
	CASE m.parse_state WHEN 0 THEN 'ok' WHEN 1 THEN 'partial'
		WHEN 2 THEN 'unparsed' ELSE 'over_quota' END AS parse_state,
	m.parse_reason, s.deleted_at
FROM message m
JOIN message_state s ON s.message_id = m.id
LEFT JOIN blob b ON b.id = m.blob_id;

CREATE TABLE attachments (
	message_id      bigint NOT NULL,
	size            bigint NOT NULL,
	ordinal         integer NOT NULL,
	inline          boolean NOT NULL,
	content_type    text NOT NULL,
	filename        text,
	content_id      text,
	PRIMARY KEY (message_id, ordinal)
);

-- --- threads ----------------------------------------------------------------

CREATE TABLE threads (
	id              bigint PRIMARY KEY,
	account_id      uuid NOT NULL,
	messages        bigint NOT NULL,  -- not deleted
	first_at        timestamptz NOT NULL,
	last_at         timestamptz NOT NULL,
	-- hash of the account and the subject without prefixes; NULL: no subject
	subject_key     bigint,
	-- what it holds: 1 = a first message, 2 = a reply that names no parent.
	-- 2 without 1: the parent may still come.
	starts          smallint NOT NULL DEFAULT 0,
	-- address_key() of whom it is from, and of them and whom it was sent to,
	-- the account itself included; the first 32
	authors         integer[] NOT NULL DEFAULT '{}',
	people          integer[] NOT NULL DEFAULT '{}',
	subject         text NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX threads_account ON threads (account_id, last_at);
CREATE INDEX threads_subject ON threads (subject_key, first_at, id);
CREATE INDEX threads_orphan ON threads (subject_key, first_at, id)
	WHERE starts = 2;

-- Every Message-ID seen or referenced, as a hash, so that a parent that
-- comes late finds its thread.
CREATE TABLE thread_ref (
	account_id      uuid NOT NULL,
	mid             bigint NOT NULL,
	thread_id       bigint NOT NULL,
	PRIMARY KEY (account_id, mid)
);
CREATE INDEX thread_ref_thread ON thread_ref (thread_id);

-- --- full text --------------------------------------------------------------

-- Two tables.  search_fresh has no index on the text, which is nine tenths of the
-- cost of an indexed insert: a search looks at all of the account's rows there,
-- 2 to 4 microseconds each.  When an account has some thousand of them, the
-- clerk moves them into search_merged (search_merge()), all in one go, where
-- words are found by an index.  So a small account costs no index at all, and a
-- large one never has more than a short tail without.
CREATE TABLE search_fresh (
	message_id      bigint NOT NULL,
	account_id      uuid NOT NULL,
	tsv             tsvector NOT NULL
) WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX search_fresh_account ON search_fresh (account_id, message_id);

-- Accounts with enough in search_fresh.  One may be named several times.
CREATE TABLE search_due (
	account_id      uuid NOT NULL,
	since           timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- What stands before each word of an account in the index, so that a search
-- reads nothing of what other accounts have written, be it a word, the beginning
-- of one or a phrase.  36 bits of a hash: should two accounts share them, the
-- search is slower and no less right.
CREATE FUNCTION search_prefix(account uuid) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT left(encode(int8send(uuid_hash_extended(account, 0)),
	    'base64'), 6)
$$;
-- The words of a text as they are in the index, and the prefix alone, which is
-- what all texts of the account have in common.
CREATE FUNCTION search_keys(account uuid, tsv tsvector) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1000 AS $$
	SELECT array_to_tsvector(string_to_array(p || E'\x01' || p ||
	    array_to_string(tsvector_to_array(tsv), E'\x01' || p), E'\x01'))
	FROM left(encode(int8send(uuid_hash_extended(account, 0)),
	    'base64'), 6) p
$$;

-- One GIN index is a serial bottleneck; 16 of them are none.
CREATE TABLE search_merged (
	message_id      bigint NOT NULL,
	account_id      uuid NOT NULL,
	tsv             tsvector NOT NULL
) PARTITION BY HASH (account_id);
DO $$
BEGIN
	FOR i IN 0..15 LOOP
		EXECUTE format('CREATE TABLE search_merged_%s PARTITION OF '
		    'search_merged FOR VALUES WITH (MODULUS 16, REMAINDER %s) '
		    'WITH (toast_tuple_target = 8160)', i, i);
	END LOOP;
END $$;
CREATE INDEX search_merged_account ON search_merged (account_id, message_id);
-- search_merge() empties the pending list it has filled.
CREATE INDEX search_merged_keys ON search_merged
	USING gin (search_keys(account_id, tsv))
	WITH (fastupdate = on, gin_pending_list_limit = 32768);

-- Rows stay in the table as they are up to 8 kB.  What is larger is compressed
-- by lz4, or not at all where the server has none: pglz would cost more than
-- all the rest of the insert.
DO $$
BEGIN
	ALTER TABLE search_fresh ALTER tsv SET COMPRESSION lz4;
	ALTER TABLE search_merged ALTER tsv SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
	ALTER TABLE search_fresh ALTER tsv SET STORAGE EXTERNAL;
	ALTER TABLE search_merged ALTER tsv SET STORAGE EXTERNAL;
END $$;

-- What a search reads.
CREATE VIEW message_fts AS
SELECT message_id, account_id, tsv FROM search_fresh
UNION ALL
SELECT message_id, account_id, tsv FROM search_merged;

-- --- work -------------------------------------------------------------------

CREATE TABLE jobs (
	id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
	queue           text NOT NULL CHECK (queue IN ('interactive', 'bulk')),
	kind            text NOT NULL,
	account_id      uuid,
	state           text NOT NULL DEFAULT 'queued'
	                CHECK (state IN ('queued', 'running', 'done', 'dead')),
	payload         jsonb NOT NULL DEFAULT '{}',
	attempts        integer NOT NULL DEFAULT 0,
	max_attempts    integer NOT NULL DEFAULT 10,
	-- how far its work was when it failed last
	progress        bigint NOT NULL DEFAULT 0,
	run_at          timestamptz NOT NULL DEFAULT now(),
	lock_until      timestamptz,
	owner           text,
	started_at      timestamptz,  -- of the attempt that is running
	-- what bulk jobs have had of the workers' time; least goes first
	served_msecs    bigint NOT NULL DEFAULT 0,
	rung_at         timestamptz,
	last_error      text NOT NULL DEFAULT '',
	-- same key: one queued and one running at most
	dedup_key       text,
	created_at      timestamptz NOT NULL DEFAULT now(),
	finished_at     timestamptz
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02,
	autovacuum_vacuum_threshold = 200);
CREATE INDEX jobs_queued ON jobs (run_at) WHERE state = 'queued';
CREATE INDEX jobs_bulk ON jobs (served_msecs, run_at)
	WHERE state = 'queued' AND queue = 'bulk';
CREATE INDEX jobs_running ON jobs (lock_until) WHERE state = 'running';
CREATE INDEX jobs_finished ON jobs (finished_at)
	WHERE state IN ('done', 'dead');
CREATE UNIQUE INDEX jobs_one_queued ON jobs (dedup_key)
	WHERE state = 'queued';
CREATE UNIQUE INDEX jobs_one_running ON jobs (dedup_key)
	WHERE state = 'running';
CREATE INDEX jobs_account ON jobs (account_id);

-- What made trouble (R-SYNC-9): it killed a child, ended the connection, was
-- refused.  uid 0..0: the folder as a whole.  `noted` is left out of ordinary
-- work and tried alone after it; `parked` waits for next_at; NULL there: not to
-- be tried again.
CREATE TABLE quarantine (
	id              bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
	account_id      uuid NOT NULL,
	mailbox_id      bigint NOT NULL,
	step            text NOT NULL
	                CHECK (step IN ('folder', 'fetch', 'parse', 'store')),
	uid_from        bigint NOT NULL,
	uid_to          bigint NOT NULL,
	attempts        integer NOT NULL DEFAULT 0,
	state           text NOT NULL DEFAULT 'noted'
	                CHECK (state IN ('noted', 'parked', 'skipped')),
	reason          text NOT NULL DEFAULT '',
	first_at        timestamptz NOT NULL DEFAULT now(),
	last_at         timestamptz NOT NULL DEFAULT now(),
	next_at         timestamptz DEFAULT now(),
	UNIQUE (mailbox_id, step, uid_from, uid_to)
);
CREATE INDEX quarantine_account ON quarantine (account_id);

-- --- what the application changed and the server does not know yet ----------

CREATE TABLE changes (
	id              bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
	account_id      uuid NOT NULL,
	message_id      bigint NOT NULL,
	kind            text NOT NULL
	                CHECK (kind IN ('flags', 'move', 'delete')),
	flags_add       integer NOT NULL DEFAULT 0,
	flags_remove    integer NOT NULL DEFAULT 0,
	keywords_add    text[] NOT NULL DEFAULT '{}',
	keywords_remove text[] NOT NULL DEFAULT '{}',
	mailbox_id      bigint,  -- move: to
	job_id          uuid,
	created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX changes_account ON changes (account_id, message_id);

-- What of a message's flags is ours for now (R-SYNC-7).
CREATE VIEW pending_flags AS
SELECT c.account_id, c.message_id, bit_or(c.flags_add) AS flags_add,
	bit_or(c.flags_remove) AS flags_remove,
	coalesce(array_agg(k.a) FILTER (WHERE k.a IS NOT NULL), '{}')
	    AS keywords_add,
	coalesce(array_agg(k.r) FILTER (WHERE k.r IS NOT NULL), '{}')
	    AS keywords_remove
FROM changes c
LEFT JOIN LATERAL unnest(c.keywords_add, c.keywords_remove) k(a, r) ON true
WHERE c.kind = 'flags'
GROUP BY c.account_id, c.message_id;

CREATE TABLE drafts (
	id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
	account_id      uuid NOT NULL REFERENCES accounts ON DELETE CASCADE,
	message_id      bigint,  -- its copy in the Drafts folder
	content         jsonb NOT NULL DEFAULT '{}',
	created_at      timestamptz NOT NULL DEFAULT now(),
	updated_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX drafts_account ON drafts (account_id);

CREATE TABLE outbox (
	id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
	account_id      uuid NOT NULL REFERENCES accounts ON DELETE CASCADE,
	state           text NOT NULL DEFAULT 'queued' CHECK (state IN
	                ('queued', 'sending', 'sent', 'refused', 'unknown')),
	attempts        integer NOT NULL DEFAULT 0,
	message_id      text,  -- the Message-ID it is sent with
	content         jsonb NOT NULL DEFAULT '{}',
	smtp_code       integer,
	smtp_text       text NOT NULL DEFAULT '',
	created_at      timestamptz NOT NULL DEFAULT now(),
	updated_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX outbox_account ON outbox (account_id);
