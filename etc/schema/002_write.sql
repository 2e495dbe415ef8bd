-- 002_write.sql - the functions that write an account's data.
--
-- Each is the second statement of a transaction whose first one locked the
-- account's fence (storage rule R-LEASE-6), so writers of one account never
-- run at the same time and need no further locks among themselves.  Each
-- statement inside sees what was committed before the lock was granted.
--
-- Arrays are parallel: element i of every array with the same prefix is the
-- same thing (m_ message, b_ blob, r_ reference, a_ attachment, c_ component).
-- Plans are generic and may be made while the tables are still empty: the
-- settings of the outermost functions, and LATERAL where a join would leave
-- the planner a choice, see to it that every row is found by its whole key.

-- SQLSTATE MH001: the folder was changed by a sibling (ERR_STALE).
-- SQLSTATE MH002: there is no such row (ERR_GONE).

-- Moves the cursor of a folder; cur = {uidvalidity, uidnext, highestmodseq,
-- backfill_below, server_messages, flag_scan_uid} or NULL to leave it.
-- delta: by how much the number of live rows changed; returns what it is now.
CREATE FUNCTION mailbox_advance(acc uuid, box bigint, gen bigint,
    cur bigint[], delta bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
	stored bigint;
BEGIN
	IF cur IS NULL THEN
		UPDATE mailbox SET messages = messages + delta
		WHERE id = box AND account_id = acc AND generation = gen
		    AND deleted_at IS NULL
		RETURNING messages INTO stored;
	ELSE
		UPDATE mailbox SET messages = messages + delta,
		    generation = generation + 1,
		    uidvalidity = cur[1], uidnext = cur[2],
		    highestmodseq = cur[3], backfill_below = cur[4],
		    server_messages = cur[5], flag_scan_uid = cur[6],
		    last_poll_at = now()
		WHERE id = box AND account_id = acc AND generation = gen
		    AND deleted_at IS NULL
		RETURNING messages INTO stored;
	END IF;
	IF FOUND THEN
		RETURN stored;
	END IF;
	IF EXISTS (SELECT FROM mailbox WHERE id = box AND account_id = acc
	    AND deleted_at IS NULL) THEN
		RAISE EXCEPTION 'folder % has changed since it was loaded', box
		    USING ERRCODE = 'MH001';
	END IF;
	RAISE EXCEPTION 'folder % no longer exists', box
	    USING ERRCODE = 'MH002';
END $$;

-- --- threads ----------------------------------------------------------------
--
-- What a message costs here does not grow with the size of its thread, nor with
-- the number of threads that could be its own: at most 50 candidates are looked
-- at, by what stands in their own rows, and of two threads that become one the
-- larger keeps its id, so that a row moves log(n) times at most.

-- Both sets, at most 32 of them.
CREATE FUNCTION people_join(a integer[], b integer[]) RETURNS integer[]
LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN a @> b OR cardinality(a) >= 32 THEN a
	    ELSE (a || ARRAY(SELECT k FROM unnest(b) k
	        WHERE k <> ALL (a)))[:32] END
$$;

-- The people of a thread that components comp..last_comp of a batch belong to.
-- Who calls this or people_join() looks first whether it is needed, for a call
-- costs more than all the rest of the row.
CREATE FUNCTION people_of(c_people text[], thread_ids bigint[], thread bigint,
    comp integer, last_comp integer) RETURNS integer[]
LANGUAGE sql IMMUTABLE AS $$
	SELECT (ARRAY(SELECT DISTINCT k FROM generate_series(comp, last_comp) i,
	    unnest(c_people[i]::integer[]) k
	    WHERE thread_ids[i] = thread))[:32]
$$;

-- Of several threads the one that keeps its id.
CREATE FUNCTION thread_largest(ids bigint[]) RETURNS bigint
LANGUAGE sql STABLE AS $$
	SELECT coalesce((SELECT t.id FROM threads t WHERE t.id = ANY (ids)
	    ORDER BY t.messages DESC, t.id LIMIT 1), ids[1])
$$;

CREATE FUNCTION thread_merge(acc uuid, ids bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
	winner CONSTANT bigint := thread_largest(ids);
	losers CONSTANT bigint[] := array_remove(ids, winner);
	g threads;
BEGIN
	UPDATE message SET thread_id = winner WHERE thread_id = ANY (losers);
	UPDATE thread_ref SET thread_id = winner
	WHERE thread_id = ANY (losers);
	FOR g IN DELETE FROM threads WHERE id = ANY (losers) RETURNING * LOOP
		INSERT INTO threads AS t (id, account_id, messages, first_at,
		    last_at, subject_key, starts, authors, people, subject)
		VALUES (winner, acc, g.messages, g.first_at, g.last_at,
		    g.subject_key, g.starts, g.authors, g.people, g.subject)
		ON CONFLICT (id) DO UPDATE SET
		    messages = t.messages + excluded.messages,
		    first_at = least(t.first_at, excluded.first_at),
		    -- what is deleted does not count
		    last_at = CASE WHEN t.messages <= 0 THEN excluded.last_at
		        WHEN excluded.messages <= 0 THEN t.last_at
		        ELSE greatest(t.last_at, excluded.last_at) END,
		    starts = t.starts | excluded.starts,
		    authors = people_join(t.authors, excluded.authors),
		    people = people_join(t.people, excluded.people),
		    subject = CASE WHEN excluded.first_at < t.first_at
		        THEN excluded.subject ELSE t.subject END,
		    subject_key = CASE WHEN excluded.first_at < t.first_at
		        THEN excluded.subject_key ELSE t.subject_key END;
	END LOOP;
END $$;

-- Who replies without naming a parent is a correspondent of the thread already:
-- of a reply, its author; of a reply of our own, one it is addressed to.  An
-- address that both were sent to (an alias, a list) says nothing.  `own`: what
-- is ours.  Mail to oneself belongs together.
CREATE FUNCTION people_meet(own integer[], reply_authors integer[],
    reply_people integer[], people integer[]) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	linking integer[] := CASE WHEN reply_authors && own
	    THEN reply_people ELSE reply_authors END;
BEGIN
	-- Nearly all candidates end here.
	IF NOT linking && people AND NOT (linking <@ own
	    AND people <@ own) THEN
		RETURN false;
	END IF;
	RETURN (people <@ own AND reply_people <@ own) OR EXISTS (
	    SELECT FROM unnest(linking) k
	    WHERE k = ANY (people) AND k <> ALL (own));
END $$;

-- The thread of each component of a batch: an old one when any of its
-- Message-IDs is known (several become one), else a new id.  r_comp is sorted.
CREATE FUNCTION thread_resolve(acc uuid, n_comp integer, r_mid bigint[],
    r_comp integer[], OUT threads bigint[], OUT merged bigint[])
LANGUAGE plpgsql AS $$
DECLARE
	f record;
	ids bigint[];
BEGIN
	SELECT array_agg(nextval('thread_id')) INTO threads
	FROM generate_series(1, n_comp);
	merged := '{}';
	-- Rows of known references only; usually few in a backfill.
	FOR f IN SELECT k.comp, min(k.id) AS id, min(k.id) <> max(k.id) AS split,
	        min(k.i) AS lo, max(k.i) AS hi
	    FROM (SELECT r_comp[i] AS comp, i, (SELECT t.thread_id
	            FROM thread_ref t
	            WHERE t.account_id = acc AND t.mid = r_mid[i]) AS id
	        FROM generate_subscripts(r_mid, 1) i) k
	    WHERE k.id IS NOT NULL GROUP BY 1
	LOOP
		threads[f.comp] := f.id;
		CONTINUE WHEN NOT f.split AND cardinality(merged) = 0;
		-- One after the other: merging for one component changes what
		-- the next one finds.
		SELECT array_agg(DISTINCT t.thread_id ORDER BY t.thread_id)
		INTO ids
		FROM generate_series(f.lo, f.hi) i
		JOIN thread_ref t ON t.account_id = acc AND t.mid = r_mid[i];
		threads[f.comp] := ids[1];
		IF cardinality(ids) > 1 THEN
			PERFORM thread_merge(acc, ids);
			merged := merged || ids;
		END IF;
	END LOOP;
	IF cardinality(merged) > 0 THEN
		-- What was found before may have become another one since.
		FOR f IN SELECT r_comp[i] AS comp, min(t.thread_id) AS id
		    FROM generate_subscripts(r_mid, 1) i
		    JOIN thread_ref t ON t.account_id = acc
		        AND t.mid = r_mid[i]
		    GROUP BY 1
		LOOP
			threads[f.comp] := f.id;
		END LOOP;
	END IF;
	INSERT INTO thread_ref (account_id, mid, thread_id)
	SELECT acc, r_mid[i], threads[r_comp[i]]
	FROM generate_subscripts(r_mid, 1) i
	ON CONFLICT DO NOTHING;
END $$;

-- What belongs to the account itself: its address, its login, and from whom
-- the mail in its Sent folder is.
CREATE FUNCTION own_people(acc uuid, box bigint, from_addrs text[])
    RETURNS integer[]
LANGUAGE plpgsql AS $$
DECLARE
	own integer[];
	fresh integer[];
BEGIN
	SELECT a.own_keys || a.aliases INTO own FROM accounts a
	WHERE a.id = acc;
	IF EXISTS (SELECT FROM mailbox WHERE id = box AND role = 'sent') THEN
		fresh := ARRAY(SELECT address_key(a) AS k
		    FROM (SELECT DISTINCT lower(f COLLATE "C") AS a
		        FROM unnest(from_addrs) f WHERE f IS NOT NULL) d
		    WHERE address_key(a) <> ALL (own) LIMIT 32);
		IF cardinality(fresh) > 0 THEN
			UPDATE accounts SET aliases = (aliases || fresh)[:64]
			WHERE id = acc;
		END IF;
	END IF;
	RETURN own || fresh;
END $$;

-- Replies that name no parent join a thread of the same subject and people
-- within 14 days, whichever comes first; two first messages never meet.  An
-- hour is allowed for clocks that differ.
-- m_start: 1 = first message, 2 = reply that names no parent, 0 = neither.
-- merged: the threads that became one, those that are gone as well.
CREATE FUNCTION thread_by_subject(acc uuid, own integer[], todo integer[],
    ids bigint[], m_start smallint[], m_key bigint[], m_at timestamptz[],
    OUT merged bigint[])
LANGUAGE plpgsql AS $$
DECLARE
	looked_at CONSTANT integer := 50;
	i integer;
	mine threads;
	others integer[]; -- in mine, that are not ours
	other bigint;
BEGIN
	merged := '{}';
	-- A first message, for orphans that came before it.
	FOR i, other IN
		SELECT k, t.id FROM unnest(todo) k
		CROSS JOIN LATERAL (SELECT * FROM threads c
		    WHERE c.subject_key = m_key[k] AND c.starts = 2
		        AND c.first_at >= m_at[k] - interval '14 days'
		        AND c.first_at <= m_at[k] + interval '14 days'
		    ORDER BY c.first_at DESC, c.id DESC
		    LIMIT looked_at) t
		WHERE m_start[k] = 1 AND t.account_id = acc
		    AND t.last_at >= m_at[k] - interval '1 hour'
		    AND EXISTS (SELECT FROM message m JOIN threads f
		        ON f.id = m.thread_id WHERE m.id = ids[k]
		        AND people_meet(own, t.authors, t.people, f.people))
		ORDER BY t.first_at, t.id, m_at[k] <= t.first_at DESC,
		    m_at[k] DESC
	LOOP
		SELECT t.* INTO mine FROM message m
		JOIN threads t ON t.id = m.thread_id WHERE m.id = ids[i];
		CONTINUE WHEN mine.id = other OR NOT EXISTS (
		    SELECT FROM threads WHERE id = other AND starts = 2);
		PERFORM thread_merge(acc, ARRAY[mine.id, other]);
		merged := merged || mine.id || other;
	END LOOP;
	-- A reply, for what is there.
	FOR i IN
		SELECT k FROM unnest(todo) k
		WHERE m_start[k] = 2 AND m_key[k] IS NOT NULL
		ORDER BY m_at[k], k
	LOOP
		SELECT t.* INTO mine FROM message m
		JOIN threads t ON t.id = m.thread_id WHERE m.id = ids[i];
		CONTINUE WHEN mine.starts & 1 <> 0;
		others := ARRAY(SELECT k FROM unnest(mine.authors || mine.people) k
		    WHERE k <> ALL (own));
		SELECT t.id INTO other
		FROM (SELECT * FROM threads c
		    WHERE c.subject_key = m_key[i]
		        AND c.first_at <= m_at[i] + interval '1 hour'
		    ORDER BY c.first_at DESC, c.id DESC
		    LIMIT looked_at) t
		WHERE t.account_id = acc AND t.id <> mine.id
		    AND t.last_at >= m_at[i] - interval '14 days'
		    -- Nearly all candidates end here: people_meet() costs more
		    -- than all the rest, and is never true without this.
		    AND (others && t.people OR others && t.authors
		        OR mine.people <@ own AND t.people <@ own)
		    AND (people_meet(own, mine.authors, mine.people, t.people)
		        OR t.starts = 2 AND people_meet(own, t.authors,
		            t.people, mine.people))
		ORDER BY t.starts & 1 DESC, t.first_at DESC, t.id
		LIMIT 1;
		IF FOUND THEN
			PERFORM thread_merge(acc, ARRAY[mine.id, other]);
			merged := merged || mine.id || other;
		END IF;
	END LOOP;
END $$;

CREATE FUNCTION threads_of(message_ids bigint[]) RETURNS bigint[]
LANGUAGE sql STABLE AS $$
	SELECT coalesce(array_agg(DISTINCT thread_id), '{}') FROM message
	WHERE id = ANY (message_ids)
$$;

-- Messages of these threads came back (+1) or went (-1).  The threads.
CREATE FUNCTION thread_count(message_ids bigint[], delta integer)
    RETURNS bigint[]
LANGUAGE sql AS $$
	WITH done AS (
		UPDATE threads t SET messages = t.messages + delta * c.n,
		    last_at = CASE
		        WHEN delta > 0 AND t.messages <= 0 THEN c.newest
		        WHEN delta > 0 THEN greatest(t.last_at, c.newest)
		        WHEN c.newest < t.last_at THEN t.last_at
		        -- the newest that is left
		        ELSE coalesce((SELECT m.internal_date FROM message m
		            JOIN message_state s ON s.message_id = m.id
		            WHERE m.thread_id = t.id AND s.deleted_at IS NULL
		            ORDER BY m.internal_date DESC LIMIT 1), t.last_at)
		        END
		FROM (SELECT thread_id, count(*) AS n,
		        max(internal_date) AS newest
		    FROM message WHERE id = ANY (message_ids) GROUP BY 1) c
		WHERE t.id = c.thread_id
		RETURNING t.id
	)
	SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM done
$$;

-- What the server says, with what the application changed since.
CREATE FUNCTION flags_with(flags integer, p pending_flags) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
	SELECT (flags | p.flags_add) & ~p.flags_remove
$$;
CREATE FUNCTION keywords_with(keywords text[], p pending_flags)
    RETURNS text[]
LANGUAGE sql IMMUTABLE AS $$
	SELECT ARRAY(SELECT k FROM unnest(keywords || p.keywords_add) k
	    WHERE k <> ALL (p.keywords_remove)
	    GROUP BY k ORDER BY k COLLATE "C")
$$;

-- The elements of an array that have these numbers, in their order.
CREATE FUNCTION pick(elements anyarray, numbers integer[]) RETURNS anyarray
LANGUAGE sql IMMUTABLE AS $$
	SELECT array_agg(elements[i] ORDER BY o)
	FROM unnest(numbers) WITH ORDINALITY k(i, o)
$$;

-- The date that the server gives a message at its new place: a copy may have
-- another one than what it was made of, and is known by it when its UID is void.
CREATE FUNCTION message_redate(ids bigint[], dates timestamptz[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
	threads_ bigint[];
BEGIN
	WITH changed AS (
		UPDATE message m SET internal_date = dates[i]
		FROM generate_subscripts(ids, 1) i
		WHERE m.id = ids[i] AND m.internal_date <> dates[i]
		RETURNING m.thread_id
	)
	SELECT array_agg(DISTINCT thread_id) INTO threads_ FROM changed;
	IF threads_ IS NOT NULL THEN
		UPDATE threads t SET last_at = coalesce((
		    SELECT max(m.internal_date) FROM message m
		    JOIN message_state s ON s.message_id = m.id
		    WHERE m.thread_id = t.id AND s.deleted_at IS NULL),
		    t.last_at)
		WHERE t.id = ANY (threads_);
	END IF;
END $$;

-- Rows that get a place (again): folder, UID and flags.
CREATE FUNCTION give_place(acc uuid, box bigint, ids bigint[],
    uids bigint[], flags_ integer[], keywords_ text[], modseqs bigint[])
    RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
	back bigint[];
BEGIN
	-- Rows that were adrift in a folder that is absent leave its count.
	UPDATE mailbox b SET messages = b.messages - c.n
	FROM (SELECT mailbox_id, count(*) AS n FROM message_state
	    WHERE message_id = ANY (ids) AND uid IS NOT NULL
	        AND deleted_at IS NULL
	    GROUP BY 1) c
	WHERE b.id = c.mailbox_id;
	SELECT array_agg(message_id) INTO back FROM message_state
	WHERE message_id = ANY (ids) AND deleted_at IS NOT NULL;
	IF back IS NOT NULL THEN
		PERFORM thread_count(back, 1);
	END IF;
	-- Two steps: rows of a folder may swap their UIDs.  A row that had been
	-- deleted and comes back elsewhere may be a move seen from its end, of a
	-- message of the same bytes that still has its place.
	UPDATE message_state s SET uid = NULL, twin_since = CASE
	    WHEN s.deleted_at IS NOT NULL
	        AND (s.mailbox_id <> box OR s.uid IS DISTINCT FROM uids[i])
	    THEN now() ELSE s.twin_since END
	FROM generate_subscripts(ids, 1) i
	WHERE s.message_id = ids[i]
	    AND (s.uid IS NOT NULL OR s.deleted_at IS NOT NULL);
	UPDATE message_state s SET mailbox_id = box, uid = uids[i],
	    flags = coalesce(flags_[i], s.flags),
	    keywords = coalesce(string_to_array(keywords_[i], ' '),
	        s.keywords),
	    modseq = modseqs[i], deleted_at = NULL, lost_at = NULL
	FROM generate_subscripts(ids, 1) i
	WHERE s.message_id = ids[i] AND s.account_id = acc;
	IF EXISTS (SELECT FROM changes WHERE account_id = acc) THEN
		UPDATE message_state s SET flags = flags_with(s.flags, p),
		    keywords = keywords_with(s.keywords, p)
		FROM pending_flags p
		WHERE p.account_id = acc AND s.message_id = p.message_id
		    AND s.message_id = ANY (ids);
	END IF;
	RETURN cardinality(ids);
END $$;

-- So many texts were added: when they are enough the clerk is told.  The row is
-- locked already, and the update is HOT.
CREATE FUNCTION search_note(acc uuid, n integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
	tail_max CONSTANT integer := 2000;
	since integer;
BEGIN
	UPDATE account_fence SET unmerged =
	    CASE WHEN unmerged + n < tail_max THEN unmerged + n ELSE 0 END
	WHERE account_id = acc RETURNING unmerged INTO since;
	IF since < n THEN
		INSERT INTO search_due (account_id) VALUES (acc);
	END IF;
END $$;

-- --- a batch of new messages ------------------------------------------------

-- m_blob, m_comp: numbers (from 1) of blob and component; m_age: internal date
-- in seconds * 2^20 + number of the row, so that a minimum names its row.

CREATE FUNCTION ingest(acc uuid, box bigint, gen bigint, cur bigint[],
    n_comp integer, c_authors text[], c_people text[],
    m_uid bigint[], m_flags integer[], m_keywords text[], m_modseq bigint[],
    m_size bigint[], m_internal timestamptz[], m_sent timestamptz[],
    m_mid bigint[], m_message_id text[], m_in_reply_to text[],
    m_refs text[], m_subject text[], m_from_addr text[],
    m_from_name text[], m_recipients jsonb[], m_snippet text[],
    m_has_attachments boolean[], m_parse_state smallint[],
    m_parse_reason text[], m_blob integer[], m_comp integer[],
    m_start smallint[], m_age bigint[], m_subject_key bigint[],
    m_base_subject text[], m_tsv tsvector[],
    b_digest bytea[], b_segment integer[], b_offset bigint[],
    b_codec smallint[], b_stored bigint[], b_size bigint[],
    b_copies integer[],
    r_mid bigint[], r_comp integer[],
    a_row integer[], a_ordinal integer[], a_size bigint[],
    a_inline boolean[], a_type text[], a_filename text[], a_cid text[],
    OUT created bigint[], OUT updated bigint[], OUT threads bigint[],
    OUT newest bigint, OUT stored bigint)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_hashjoin = off
    SET enable_mergejoin = off SET enable_bitmapscan = off AS $$
DECLARE
	n integer := cardinality(m_uid);
	todo integer[];         -- rows to insert
	ids bigint[];           -- of all rows; only those of todo are used
	blob_ids bigint[];
	blob_old boolean[];     -- whether somebody had these bytes already
	is_live boolean;
	thread_ids bigint[];    -- by component
	merged bigint[];        -- threads that have become one
	known integer[];        -- rows that are there already
	back integer[];         -- rows that found their old message
	back_ids bigint[];
	delta bigint := 0;
BEGIN
	updated := '{}';
	SELECT array_agg(i) INTO todo FROM generate_series(1, n) i;

	-- 1. The same UID again.  Live: nothing to do.  Deleted: the same bytes
	-- come back, other bytes take the UID over.
	IF EXISTS (SELECT FROM message_state s WHERE s.mailbox_id = box
	    AND s.uid >= (SELECT min(u) FROM unnest(m_uid) u)
	    AND s.uid <= (SELECT max(u) FROM unnest(m_uid) u)) THEN
		SELECT array_agg(i) FILTER (WHERE s.deleted_at IS NULL),
		    array_agg(i) FILTER (WHERE s.deleted_at IS NOT NULL
		        AND b.digest IS NOT DISTINCT FROM b_digest[m_blob[i]]),
		    array_agg(s.message_id) FILTER (WHERE
		        s.deleted_at IS NOT NULL
		        AND b.digest IS NOT DISTINCT FROM b_digest[m_blob[i]])
		INTO known, back, back_ids
		FROM generate_series(1, n) i
		CROSS JOIN LATERAL (SELECT * FROM message_state
		    WHERE mailbox_id = box AND uid = m_uid[i] LIMIT 1) s
		LEFT JOIN blob b ON b.id = s.blob_id;
		IF back IS NOT NULL THEN
			delta := delta + give_place(acc, box,
			    back_ids, pick(m_uid, back), pick(m_flags, back),
			    pick(m_keywords, back), pick(m_modseq, back));
			updated := updated || back_ids;
		END IF;
		UPDATE message_state SET uid = NULL
		WHERE mailbox_id = box AND uid = ANY (m_uid)
		    AND deleted_at IS NOT NULL;
		SELECT array_agg(i) INTO todo FROM unnest(todo) i
		WHERE i <> ALL (coalesce(known, '{}') || coalesce(back, '{}'));
	END IF;

	-- 2. Messages that lost their place and turn up here.
	IF todo IS NOT NULL AND has_unplaced(acc) THEN
		SELECT f.i, f.ids INTO back, back_ids
		FROM unplaced_same_bytes(acc, box, todo, m_uid, m_mid, m_size,
		    m_internal, m_blob, b_digest) f;
		IF back IS NOT NULL THEN
			delta := delta + give_place(acc, box,
			    back_ids, pick(m_uid, back), pick(m_flags, back),
			    pick(m_keywords, back), pick(m_modseq, back));
			PERFORM message_redate(back_ids,
			    pick(m_internal, back));
			updated := updated || back_ids;
			SELECT array_agg(i) INTO todo FROM unnest(todo) i
			WHERE i <> ALL (back);
		END IF;
	END IF;

	IF todo IS NOT NULL THEN
		-- 3. Blobs: unique and sorted by digest, so that batches of
		-- two accounts never wait for each other crosswise.
		IF cardinality(todo) = n THEN
			WITH put AS (
				INSERT INTO blob AS b (digest, segment,
				    "offset", codec, stored, size, refs)
				SELECT b_digest[k], b_segment[k], b_offset[k],
				    b_codec[k], b_stored[k], b_size[k],
				    b_copies[k]
				FROM generate_subscripts(b_digest, 1) k
				ON CONFLICT (digest) DO UPDATE
				SET refs = b.refs + excluded.refs
				RETURNING id, xmax <> 0 AS is_old
			)
			SELECT array_agg(id), array_agg(is_old)
			INTO blob_ids, blob_old FROM put;
		ELSE
			SELECT array_agg(EXISTS (SELECT FROM blob b
			    WHERE b.digest = b_digest[k]) ORDER BY k)
			INTO blob_old FROM generate_subscripts(b_digest, 1) k;
			INSERT INTO blob AS b (digest, segment, "offset",
			    codec, stored, size, refs)
			SELECT b_digest[k], b_segment[k], b_offset[k],
			    b_codec[k], b_stored[k], b_size[k], c.copies
			FROM (SELECT m_blob[i] AS k, count(*) AS copies
			    FROM unnest(todo) i WHERE m_blob[i] IS NOT NULL
			    GROUP BY 1 ORDER BY 1) c
			ON CONFLICT (digest) DO UPDATE
			SET refs = b.refs + excluded.refs;
			SELECT array_agg(b.id ORDER BY k) INTO blob_ids
			FROM generate_subscripts(b_digest, 1) k
			LEFT JOIN blob b ON b.digest = b_digest[k];
		END IF;

		-- 4. Threads.
		SELECT r.threads, r.merged INTO thread_ids, merged
		FROM thread_resolve(acc, n_comp, r_mid, r_comp) r;
		INSERT INTO threads AS t (id, account_id, messages, first_at,
		    last_at, subject_key, starts, authors, people, subject)
		SELECT f.id, acc, f.n, m_internal[f.oldest], f.last_at,
		    m_subject_key[f.oldest], f.starts,
		    CASE WHEN f.comp = f.last_comp
		        THEN c_authors[f.comp]::integer[]
		        ELSE people_of(c_authors, thread_ids, f.id, f.comp,
		            f.last_comp) END,
		    CASE WHEN f.comp = f.last_comp
		        THEN c_people[f.comp]::integer[]
		        ELSE people_of(c_people, thread_ids, f.id, f.comp,
		            f.last_comp) END,
		    m_base_subject[f.oldest]
		FROM (SELECT thread_ids[m_comp[i]] AS id, count(*) AS n,
		        (min(m_age[i]) & 1048575)::integer AS oldest,
		        max(m_internal[i]) AS last_at,
		        bit_or(m_start[i]) AS starts,
		        min(m_comp[i]) AS comp, max(m_comp[i]) AS last_comp
		    FROM unnest(todo) i GROUP BY 1) f
		ON CONFLICT (id) DO UPDATE SET
		    messages = t.messages + excluded.messages,
		    first_at = least(t.first_at, excluded.first_at),
		    last_at = CASE WHEN t.messages <= 0 THEN excluded.last_at
		        ELSE greatest(t.last_at, excluded.last_at) END,
		    starts = t.starts | excluded.starts,
		    authors = CASE WHEN t.authors @> excluded.authors
		        THEN t.authors
		        ELSE people_join(t.authors, excluded.authors) END,
		    people = CASE WHEN t.people @> excluded.people
		        THEN t.people
		        ELSE people_join(t.people, excluded.people) END,
		    subject = CASE WHEN excluded.first_at < t.first_at
		        THEN excluded.subject ELSE t.subject END,
		    subject_key = CASE WHEN excluded.first_at < t.first_at
		        THEN excluded.subject_key ELSE t.subject_key END;

		-- 5. The rows.
		SELECT array_agg(nextval('message_id')) INTO ids
		FROM generate_series(1, n);
		INSERT INTO message (id, thread_id, blob_id, size,
		    internal_date, sent_at, mid, account_id, parse_state,
		    has_attachments, message_id, in_reply_to, refs, subject,
		    from_addr, from_name, snippet, parse_reason, recipients)
		SELECT ids[i], thread_ids[m_comp[i]], blob_ids[m_blob[i]],
		    m_size[i], m_internal[i], m_sent[i], m_mid[i], acc,
		    m_parse_state[i], m_has_attachments[i], m_message_id[i],
		    m_in_reply_to[i], m_refs[i], m_subject[i], m_from_addr[i],
		    m_from_name[i], m_snippet[i], m_parse_reason[i],
		    m_recipients[i]
		FROM unnest(todo) i;
		-- A first download meets copies, no moves.
		SELECT bootstrapped_at IS NOT NULL INTO is_live
		FROM accounts WHERE id = acc;
		INSERT INTO message_state (message_id, mailbox_id, uid,
		    blob_id, mid, modseq, flags, account_id, keywords,
		    twin_since)
		SELECT ids[i], box, m_uid[i], blob_ids[m_blob[i]], m_mid[i],
		    m_modseq[i], m_flags[i], acc,
		    string_to_array(m_keywords[i], ' '),
		    CASE WHEN is_live AND blob_old[m_blob[i]] THEN now() END
		FROM unnest(todo) i;
		INSERT INTO search_fresh (message_id, account_id, tsv)
		SELECT ids[i], acc, m_tsv[i] FROM unnest(todo) i;
		PERFORM search_note(acc, cardinality(todo));
		IF cardinality(a_row) > 0 THEN
			INSERT INTO attachments (message_id, ordinal, size,
			    inline, content_type, filename, content_id)
			SELECT ids[a_row[k]], a_ordinal[k], a_size[k],
			    a_inline[k], a_type[k], a_filename[k], a_cid[k]
			FROM generate_subscripts(a_row, 1) k
			WHERE cardinality(todo) = n
			    OR a_row[k] = ANY (todo);
		END IF;
		IF m_start && '{1,2}'::smallint[] THEN
			merged := merged || thread_by_subject(acc,
			    own_people(acc, box, m_from_addr), todo, ids,
			    m_start, m_subject_key, m_internal);
		END IF;
		SELECT array_agg(DISTINCT t ORDER BY t) INTO threads
		FROM (SELECT unnest(merged) AS t
		    UNION ALL SELECT thread_ids[m_comp[i]] FROM unnest(todo) i) x;
		SELECT array_agg(ids[i] ORDER BY ids[i]),
		    extract(epoch FROM max(m_internal[i]))::bigint
		INTO created, newest
		FROM unnest(todo) i;
		delta := delta + cardinality(todo);
	END IF;
	created := coalesce(created, '{}');
	threads := coalesce(threads, '{}') || threads_of(updated);
	stored := mailbox_advance(acc, box, gen, cur, delta);
END $$;

-- --- changes of what is there -----------------------------------------------

-- Flags by UID and vanished UIDs.  What the application changed and the
-- server does not know yet stays (R-SYNC-7).
CREATE FUNCTION apply_changes(acc uuid, box bigint, gen bigint,
    cur bigint[], f_uid bigint[], f_flags integer[], f_keywords text[],
    f_modseq bigint[], vanished bigint[],
    OUT updated bigint[], OUT deleted bigint[], OUT threads bigint[],
    OUT stored bigint)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off AS $$
DECLARE
	has_pending boolean := false;
	gone bigint[];
	delta bigint := 0;
BEGIN
	IF cardinality(f_uid) > 0 THEN
		has_pending := EXISTS (SELECT FROM changes
		    WHERE account_id = acc AND kind = 'flags');
		WITH told AS (
			SELECT s.message_id, s.flags AS old_flags,
			    s.keywords AS old_keywords,
			    f_modseq[i] AS modseq, f_flags[i] AS flags,
			    string_to_array(f_keywords[i], ' ') AS keywords
			FROM generate_subscripts(f_uid, 1) i
			CROSS JOIN LATERAL (SELECT * FROM message_state
			    WHERE mailbox_id = box AND uid = f_uid[i]
			    LIMIT 1) s
			WHERE s.deleted_at IS NULL
		), done AS (
			UPDATE message_state s SET flags = w.flags,
			    keywords = w.keywords,
			    modseq = greatest(s.modseq, w.modseq)
			FROM (SELECT t.message_id, t.modseq,
			    t.old_flags, t.old_keywords,
			    CASE WHEN p.message_id IS NULL THEN t.flags
			    ELSE flags_with(t.flags, p) END AS flags,
			    CASE WHEN p.message_id IS NULL THEN t.keywords
			    ELSE keywords_with(t.keywords, p) END AS keywords
			    FROM told t LEFT JOIN pending_flags p
			        ON has_pending AND p.account_id = acc
			        AND p.message_id = t.message_id
			) w
			WHERE s.message_id = w.message_id
			    AND (s.flags <> w.flags
			        OR s.keywords <> w.keywords
			        OR s.modseq < w.modseq)
			RETURNING s.message_id, s.flags <> w.old_flags
			    OR s.keywords <> w.old_keywords AS is_change
		)
		-- A new modseq alone is no change.
		SELECT array_agg(message_id ORDER BY message_id)
		INTO updated
		FROM done WHERE is_change;
	END IF;
	IF cardinality(vanished) > 0 THEN
		gone := ARRAY(SELECT message_id FROM message_state
		    WHERE mailbox_id = box AND uid = ANY (vanished)
		        AND deleted_at IS NULL);
		SELECT updated || m.moved, m.deleted, m.threads
		INTO updated, deleted, threads
		FROM messages_gone(acc, box, gone) m;
		delta := -cardinality(gone);
	END IF;
	updated := coalesce(updated, '{}');
	deleted := coalesce(deleted, '{}');
	threads := coalesce(threads, '{}');
	stored := mailbox_advance(acc, box, gen, cur, delta);
END $$;
