-- 003_work.sql - jobs, and the upkeep of the clerk.

-- --- jobs -------------------------------------------------------------------

-- Queues a job; jobs about the whole account are queued once at most.
CREATE FUNCTION job_add(queue_ text, kind_ text, account uuid, payload_ jsonb)
    RETURNS uuid
LANGUAGE sql AS $$
	INSERT INTO jobs (queue, kind, account_id, payload, max_attempts,
	    dedup_key)
	VALUES (queue_, kind_, account, payload_,
	    CASE queue_ WHEN 'bulk' THEN 20 ELSE 10 END,
	    CASE WHEN kind_ IN ('sync_bootstrap_account',
	        'refresh_account_job') THEN kind_ || ':' || account END)
	ON CONFLICT (dedup_key) WHERE state = 'queued' DO UPDATE
	SET run_at = least(jobs.run_at, now()), rung_at = NULL
	RETURNING id
$$;

-- For applications: poll all folders now.  LPUSH the id to jobs:interactive.
CREATE FUNCTION refresh(account_id uuid) RETURNS uuid
LANGUAGE plpgsql SET search_path = mailherd AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM accounts a WHERE a.id = account_id
	    AND a.state <> 'deleted') THEN
		RAISE EXCEPTION 'no such account: %', account_id
		    USING ERRCODE = 'MH002';
	END IF;
	RETURN job_add('interactive', 'refresh_account_job', account_id,
	    jsonb_build_object('account_id', account_id));
END $$;

-- To run until `now + lock_`.  A ring for a bulk job says that there is work;
-- which is done next is decided here: that of the account which had least of
-- the workers' time, so that a mailbox of three messages does not wait for
-- five of a hundred thousand.
CREATE FUNCTION job_take(rung uuid, is_bulk boolean, owner_ text,
    lock_ interval) RETURNS SETOF jobs
LANGUAGE sql AS $$
	UPDATE jobs SET state = 'running', owner = owner_,
	    lock_until = now() + lock_, started_at = now(),
	    attempts = attempts + 1, rung_at = NULL
	WHERE state = 'queued' AND run_at <= now() AND id = CASE
	    WHEN is_bulk THEN (SELECT id FROM jobs q
	        WHERE state = 'queued' AND queue = 'bulk' AND run_at <= now()
	            AND NOT EXISTS (SELECT FROM jobs r
	                WHERE r.state = 'running'
	                    AND r.dedup_key = q.dedup_key)
	        ORDER BY served_msecs, run_at LIMIT 1
	        FOR UPDATE SKIP LOCKED)
	    ELSE rung END
	RETURNING *
$$;

-- Bulk jobs of this worker that had their turn while somebody waits who had
-- less than half as much; turns get longer with what a job has had.
CREATE FUNCTION jobs_to_yield(owner_ text, slice interval)
    RETURNS SETOF uuid
LANGUAGE sql STABLE AS $$
	WITH waiting AS (
		SELECT served_msecs FROM jobs q
		WHERE state = 'queued' AND queue = 'bulk' AND run_at <= now()
		    AND NOT EXISTS (SELECT FROM jobs r
		        WHERE r.state = 'running'
		            AND r.dedup_key = q.dedup_key)
		ORDER BY served_msecs LIMIT 100
	), mine AS (
		SELECT id, served_msecs + (extract(epoch FROM
		    now() - started_at) * 1000)::bigint AS served
		FROM jobs
		WHERE state = 'running' AND queue = 'bulk' AND owner = owner_
		    AND started_at <= now() - slice
	)
	SELECT id FROM mine
	WHERE served > 2 * (SELECT min(served_msecs) FROM waiting)
	ORDER BY served DESC LIMIT (SELECT count(*) FROM waiting)
$$;

-- The owner lets others go first: no failure, and what was done counts as
-- progress.  False: it is not the owner's.
CREATE FUNCTION job_yield(id_ uuid, owner_ text, attempt integer)
    RETURNS boolean
LANGUAGE sql AS $$
	WITH given AS (
		UPDATE jobs SET state = 'queued', served_msecs = served_msecs + (extract(epoch FROM
		        now() - started_at) * 1000)::bigint,
		    owner = NULL, lock_until = NULL, rung_at = NULL,
		    run_at = now(), attempts = 0
		WHERE id = id_ AND state = 'running' AND owner = owner_
		    AND attempts = attempt
		RETURNING 1
	), twin AS (
		-- asked for again meanwhile: this one goes on instead
		DELETE FROM jobs q USING jobs j WHERE j.id = id_
		    AND j.state = 'running' AND j.owner = owner_
		    AND q.state = 'queued' AND q.dedup_key = j.dedup_key
	)
	SELECT EXISTS (SELECT FROM given)
$$;

-- Running jobs whose lock is over: their child is dead or hung.
CREATE FUNCTION jobs_requeue() RETURNS void
LANGUAGE sql AS $$
	WITH late AS (
		SELECT id FROM jobs
		WHERE state = 'running' AND lock_until < now()
		ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1000
	), next AS (
		SELECT j.id, CASE
		    WHEN j.attempts >= j.max_attempts THEN 'dead'
		    WHEN EXISTS (SELECT FROM jobs q WHERE q.state = 'queued'
		        AND q.dedup_key = j.dedup_key) THEN 'done'
		    ELSE 'queued' END AS state
		FROM jobs j JOIN late USING (id)
	)
	UPDATE jobs j SET state = n.state, lock_until = NULL, owner = NULL,
	    rung_at = NULL, run_at = now(),
	    finished_at = CASE n.state WHEN 'queued' THEN NULL
	        ELSE now() END,
	    last_error = CASE n.state
	        WHEN 'done' THEN 'replaced by a newer job'
	        ELSE 'lost: outlived its lock (' || j.owner || ')' END
	FROM next n WHERE j.id = n.id
$$;

-- How far the first synchronisation of an account is: grows with each commit
-- that moves a cursor, and with each trouble that is known by its name since.
CREATE FUNCTION job_progress(kind_ text, account uuid) RETURNS bigint
LANGUAGE sql AS $$
	SELECT CASE kind_ WHEN 'sync_bootstrap_account' THEN
	    (SELECT coalesce(sum(generation), 0) FROM mailbox
	        WHERE account_id = account)
	    + (SELECT count(*) + count(*) FILTER (WHERE state = 'parked')
	        FROM quarantine WHERE account_id = account)
	    ELSE 0 END::bigint
$$;

-- The owner's attempt (0: any of his) failed: 'queued' again, 'dead', or 'done' when a newer
-- job of the same kind waits already.  NULL: it is not the owner's.  One that
-- got further than the last has as many attempts as a new one, and comes again
-- at `soon` instead of `next`.
CREATE FUNCTION job_failed(id_ uuid, owner_ text, attempt integer,
    text_ text, is_hopeless boolean, next timestamptz, soon timestamptz) RETURNS text
LANGUAGE sql AS $$
	UPDATE jobs j SET state = n.state, owner = NULL, lock_until = NULL,
	    rung_at = NULL,
	    run_at = CASE WHEN n.is_further THEN soon
	        ELSE coalesce(next, now()) END,
	    attempts = CASE WHEN n.is_further THEN 0 ELSE j.attempts END,
	    progress = greatest(j.progress, n.now_at),
	    last_error = text_,
	    finished_at = CASE n.state WHEN 'queued' THEN NULL
	        ELSE now() END
	FROM (SELECT id, now_at, now_at > progress AS is_further, CASE
	    WHEN is_hopeless
	        OR (attempts >= max_attempts AND now_at <= progress)
	        THEN 'dead'
	    WHEN EXISTS (SELECT FROM jobs q WHERE q.state = 'queued'
	        AND q.dedup_key = r.dedup_key) THEN 'done'
	    ELSE 'queued' END AS state
	    FROM jobs r, job_progress(r.kind, r.account_id) now_at
	    WHERE id = id_) n
	WHERE j.id = n.id AND j.state = 'running' AND j.owner = owner_
	    AND (attempt = 0 OR j.attempts = attempt)
	RETURNING j.state
$$;

-- --- quarantine -------------------------------------------------------------

-- One more attempt at a step; a folder that is parked says so itself, too.
-- Only for a folder that is there: the account may be gone since.
CREATE FUNCTION quarantine_set(acc uuid, box bigint, step_ text, from_ bigint,
    to_ bigint, attempts_ integer, state_ text, reason_ text,
    next timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO quarantine AS q (account_id, mailbox_id, step, uid_from,
	    uid_to, attempts, state, reason, next_at)
	SELECT acc, b.id, step_, from_, to_, attempts_, state_, reason_, next
	FROM mailbox b
	WHERE b.id = box AND b.account_id = acc AND b.deleted_at IS NULL
	ON CONFLICT (mailbox_id, step, uid_from, uid_to) DO UPDATE
	SET attempts = excluded.attempts, reason = excluded.reason,
	    last_at = now(), state = excluded.state,
	    next_at = excluded.next_at
	WHERE q.state <> 'skipped';
	IF step_ = 'folder' AND state_ = 'parked' AND EXISTS (
	    SELECT FROM quarantine WHERE mailbox_id = box AND step = step_
	        AND state = state_) THEN
		UPDATE mailbox SET parked_until = next, park_reason = reason_,
		    park_failures = attempts_
		WHERE id = box AND account_id = acc;
	END IF;
END $$;

CREATE FUNCTION quarantine_clear(acc uuid, box bigint, step_ text,
    from_ bigint, to_ bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM quarantine
	WHERE account_id = acc AND mailbox_id = box AND step = step_
	    AND uid_from = from_ AND uid_to = to_;
	IF step_ = 'folder' THEN
		UPDATE mailbox SET parked_until = NULL, park_reason = '',
		    park_failures = 0
		WHERE id = box AND account_id = acc AND park_failures > 0;
	END IF;
END $$;

-- Past by every worker's clock.
CREATE FUNCTION due_by_now() RETURNS timestamptz
LANGUAGE sql STABLE AS $$ SELECT now() - interval '1 minute' $$;

-- All that waits is tried in the next pass.
CREATE FUNCTION quarantine_wake(acc uuid) RETURNS void
LANGUAGE sql AS $$
	UPDATE quarantine SET next_at = due_by_now()
	WHERE account_id = acc AND state <> 'skipped'
	    AND next_at > due_by_now();
	UPDATE mailbox SET parked_until = due_by_now()
	WHERE account_id = acc AND parked_until > due_by_now();
$$;

-- --- search -----------------------------------------------------------------

-- Moves up to `max_rows` texts of the account that has waited longest into the
-- index; how many there were, NULL when none waits.  Of one account at a time,
-- for its words lie next to each other in the index.  Several clerks may do so
-- at the same time.
CREATE FUNCTION search_merge(max_rows integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
	acc uuid;
	moved bigint;
	part oid;
BEGIN
	SELECT account_id INTO acc FROM search_due ORDER BY since LIMIT 1
	FOR UPDATE SKIP LOCKED;
	IF NOT FOUND THEN
		RETURN NULL;
	END IF;
	DELETE FROM search_due WHERE ctid = ANY (ARRAY(
	    SELECT ctid FROM search_due WHERE account_id = acc
	    FOR UPDATE SKIP LOCKED));
	WITH gone AS (
		DELETE FROM search_fresh WHERE ctid = ANY (ARRAY(
		    SELECT ctid FROM search_fresh WHERE account_id = acc
		    ORDER BY message_id LIMIT max_rows
		    FOR UPDATE SKIP LOCKED))
		RETURNING message_id, account_id, tsv
	), put AS (
		INSERT INTO search_merged (message_id, account_id, tsv)
		SELECT message_id, account_id, tsv FROM gone
		RETURNING tableoid
	)
	SELECT count(*), max(tableoid::bigint)::oid INTO moved, part FROM put;
	-- What is left behind would be read by each search of a neighbour.
	PERFORM gin_clean_pending_list(i.indexrelid)
	FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
	JOIN pg_am a ON a.oid = c.relam
	WHERE i.indrelid = part AND a.amname = 'gin';
	IF moved = max_rows THEN
		INSERT INTO search_due (account_id) VALUES (acc);
	END IF;
	RETURN moved;
END $$;

-- What the index has to be asked for `query`: at least all it finds.  Negations
-- are left out, phrases are words that all occur, weights do not count, and what
-- is left of a query of negations alone is everything.
CREATE FUNCTION search_index_query(acc uuid, query tsquery) RETURNS tsquery
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT CASE WHEN t IN ('', 'T') THEN quote_literal(p)
	    ELSE regexp_replace(regexp_replace(t, '<(-|[0-9]+)>', '&', 'g'),
	        '''((?:[^'']|'''')*)'':?(\*?)[ABCD]*',
	        '''' || p || '\1'':\2', 'g') END::tsquery
	FROM querytree(query) t, search_prefix(acc) p
$$;

-- Messages of an account that `query` fits, in no order.  The time it takes
-- depends on the account, not on its neighbours.
-- To start a parallel worker takes ten times as long as what it would do.
CREATE FUNCTION search_found(acc uuid, query tsquery) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE SET search_path = mailherd, pg_catalog
    SET enable_seqscan = off SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
	part integer;
BEGIN
	RETURN QUERY SELECT f.message_id FROM search_fresh f
	    WHERE f.account_id = acc AND f.tsv @@ query;
	-- Of the partition, and the account compared as no index compares it:
	-- search_keys() costs 40 us where it is a filter, so whatever the
	-- statistics say the index of words is what is to be read.
	SELECT i INTO part FROM generate_series(0, 15) i
	WHERE satisfies_hash_partition('search_merged'::regclass, 16, i, acc);
	RETURN QUERY EXECUTE format('SELECT message_id FROM search_merged_%s '
	    'WHERE search_keys(account_id, tsv) @@ $1 AND tsv @@ $2 '
	    'AND account_id IS NOT DISTINCT FROM $3', part)
	    USING search_index_query(acc, query), query, acc;
END $$;

-- --- blobs ---------------------------------------------------------------------

-- What of a segment's file, which has `size` bytes, is dead: all that is no
-- record with a row (`head` bytes before each).  The lock first: what is deleted
-- meanwhile waits and is added after.
CREATE FUNCTION segment_count(segment_ integer, size_ bigint, head bigint)
    RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
	result bigint;
BEGIN
	INSERT INTO segment (id) VALUES (segment_) ON CONFLICT DO NOTHING;
	PERFORM FROM segment WHERE id = segment_ FOR UPDATE;
	UPDATE segment SET counted_size = size_, dead = greatest(0, size_ -
	    (SELECT coalesce(sum(stored + head), 0) FROM blob b
	    WHERE b.segment = segment_))
	WHERE id = segment_ RETURNING dead INTO result;
	RETURN result;
END $$;

-- --- removal ----------------------------------------------------------------

-- Removes messages for good, with what hangs on them.
CREATE FUNCTION messages_remove(acc uuid, ids bigint[]) RETURNS void
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_hashjoin = off
    SET enable_mergejoin = off AS $$
DECLARE
	blobs bigint[];
	thread_ids bigint[];
BEGIN
	-- In this order: search_merge() may be moving a row, and the second
	-- statement sees what the first one waited for.
	DELETE FROM search_fresh
	WHERE account_id = acc AND message_id = ANY (ids);
	DELETE FROM search_merged
	WHERE account_id = acc AND message_id = ANY (ids);
	DELETE FROM attachments WHERE message_id = ANY (ids);
	DELETE FROM changes WHERE account_id = acc AND message_id = ANY (ids);
	DELETE FROM message_state WHERE message_id = ANY (ids);
	WITH gone AS (
		DELETE FROM message WHERE id = ANY (ids)
		RETURNING blob_id, thread_id
	)
	SELECT array_agg(blob_id) FILTER (WHERE blob_id IS NOT NULL),
	    array_agg(DISTINCT thread_id)
	INTO blobs, thread_ids FROM gone;

	-- In the order in which ingest() locks them.
	PERFORM FROM blob WHERE id = ANY (blobs) ORDER BY digest FOR UPDATE;
	UPDATE blob b SET refs = b.refs - c.n
	FROM (SELECT id, count(*) AS n FROM unnest(blobs) id GROUP BY 1) c
	WHERE b.id = c.id;
	WITH gone AS (
		DELETE FROM blob WHERE id = ANY (blobs) AND refs <= 0
		RETURNING segment, stored, digest
	), own AS (
		INSERT INTO blob_file_dead (digest)
		SELECT digest FROM gone WHERE segment = 0
		ON CONFLICT (digest) DO UPDATE SET since = now()
	)
	INSERT INTO segment AS s (id, dead)
	SELECT segment, sum(stored) FROM gone WHERE segment <> 0
	GROUP BY 1 ORDER BY 1
	ON CONFLICT (id) DO UPDATE SET dead = s.dead + excluded.dead;

	WITH gone AS (
		DELETE FROM threads t WHERE id = ANY (thread_ids)
		    AND NOT EXISTS (SELECT FROM message m
		        WHERE m.thread_id = t.id)
		RETURNING id
	)
	SELECT array_agg(id) INTO thread_ids FROM gone;
	DELETE FROM thread_ref WHERE thread_id = ANY (thread_ids);
END $$;

-- Locks an account's fence as writers do, without waiting for one that holds it.
CREATE FUNCTION fence_try(acc uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM account_fence WHERE account_id = acc
	FOR NO KEY UPDATE SKIP LOCKED;
	RETURN FOUND;
END $$;

-- An account with messages expunged for so long whose fence is free, now locked.
-- One that is held does not hold up the others; a few are gone around.
CREATE FUNCTION purge_account(expunged_for interval) RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
	held uuid[] := '{}';
	acc uuid;
BEGIN
	FOR i IN 1 .. 16 LOOP
		SELECT account_id INTO acc FROM message_state
		WHERE deleted_at < now() - expunged_for
		    AND account_id <> ALL (held)
		ORDER BY deleted_at LIMIT 1;
		IF acc IS NULL OR fence_try(acc) THEN
			RETURN acc;
		END IF;
		held := held || acc;
	END LOOP;
	RETURN NULL;
END $$;

-- One step of the removal of expunged messages, deleted folders and deleted
-- accounts, at most `max_rows` messages; false when there was nothing to do.
CREATE FUNCTION purge(max_rows integer,
    expunged_for interval DEFAULT '30 days') RETURNS boolean
LANGUAGE plpgsql SET lock_timeout = '2s' AS $$
DECLARE
	acc uuid;
	box bigint;
	ids bigint[];
BEGIN
	acc := purge_account(expunged_for);
	IF acc IS NOT NULL THEN
		SELECT array_agg(message_id) INTO ids
		FROM (SELECT message_id FROM message_state
		    WHERE deleted_at < now() - expunged_for
		        AND account_id = acc
		    ORDER BY deleted_at LIMIT max_rows) s;
		PERFORM messages_remove(acc, ids);
		RETURN true;
	END IF;

	-- Whoever deleted the folder has not come to its end.
	FOR box, acc IN SELECT id, account_id FROM mailbox WHERE is_emptying
	    AND deleted_at < now() - interval '1 minute' LOOP
		IF fence_try(acc) THEN
			PERFORM mailbox_empty(acc, box, max_rows);
			RETURN true;
		END IF;
	END LOOP;

	SELECT a.id INTO acc FROM accounts a
	JOIN account_fence f ON f.account_id = a.id
	WHERE a.state = 'deleted' ORDER BY a.state_since LIMIT 1
	FOR UPDATE OF f SKIP LOCKED;
	IF FOUND THEN
		SELECT array_agg(id) INTO ids FROM (SELECT id FROM message
		    WHERE account_id = acc LIMIT max_rows) m;
		IF ids IS NOT NULL THEN
			PERFORM messages_remove(acc, ids);
			RETURN true;
		END IF;
		DELETE FROM thread_ref WHERE (account_id, mid) IN (
		    SELECT account_id, mid FROM thread_ref
		    WHERE account_id = acc LIMIT max_rows);
		IF FOUND THEN
			RETURN true;
		END IF;
		DELETE FROM changes WHERE account_id = acc;
		DELETE FROM quarantine WHERE account_id = acc;
		DELETE FROM mailbox WHERE account_id = acc;
		DELETE FROM jobs WHERE account_id = acc;
		DELETE FROM accounts WHERE id = acc;
		RETURN true;
	END IF;

	DELETE FROM users u WHERE deleted_at IS NOT NULL
	    AND NOT EXISTS (SELECT FROM accounts WHERE user_id = u.id);
	DELETE FROM mailbox b WHERE deleted_at < now() - expunged_for
	    AND NOT EXISTS (SELECT FROM message_state
	        WHERE mailbox_id = b.id);
	DELETE FROM jobs WHERE id IN (SELECT id FROM jobs
	    WHERE state IN ('done', 'dead')
	        AND finished_at < now() - CASE state WHEN 'done'
	            THEN interval '7 days' ELSE interval '90 days' END
	    LIMIT max_rows);
	RETURN FOUND;
END $$;
