-- 005_places.sql - messages that move: without a place, found again, gone for
-- good; and what happens to folders as a whole.
--
-- A message is without a place ("unplaced") when its row says so (lost_at) or
-- when its whole folder is absent; then it may turn up elsewhere in the account
-- and keeps its id (R-SYNC-5, R-SYNC-6).  It works in either order: what turns
-- up before its old place is seen to go gets a row of its own first
-- (twin_since), and messages_gone() makes one of the two.
--
-- What happens to a folder as a whole writes the folder's row; its messages
-- follow in slices, each a transaction of its own, so that the fence is never
-- held for long (a thousand rows take 40 to 70 ms).  mailbox says what is still
-- to be done, flag_scan_uid how far it has come; whoever looks next goes on
-- there.

-- --- without a place ----------------------------------------------------------

-- Folders that LIST does not show, or no longer.
CREATE FUNCTION absent_folders(acc uuid) RETURNS SETOF bigint
LANGUAGE sql STABLE AS $$
	SELECT id FROM mailbox WHERE account_id = acc
	    AND (missing_since IS NOT NULL AND deleted_at IS NULL
	        OR is_emptying)
$$;

CREATE FUNCTION has_unplaced(acc uuid) RETURNS boolean
LANGUAGE sql STABLE AS $$
	SELECT EXISTS (SELECT FROM message_state s
	    WHERE s.account_id = acc AND s.lost_at IS NOT NULL
	        AND (s.deleted_at IS NULL
	            OR s.lost_at > now() - interval '7 days'))
	    OR EXISTS (SELECT absent_folders(acc))
$$;

-- Unplaced rows with this Message-ID.  Those of an absent folder are found by
-- way of their thread, so that no row need say that its folder is absent.
CREATE FUNCTION unplaced_with_mid(acc uuid, mid_ bigint)
    RETURNS SETOF message_state
LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN QUERY SELECT * FROM message_state s
	WHERE s.account_id = acc AND s.mid = mid_ AND s.lost_at IS NOT NULL
	    AND (s.deleted_at IS NULL
	        OR s.lost_at > now() - interval '7 days');
	IF EXISTS (SELECT absent_folders(acc)) THEN
		RETURN QUERY SELECT s.* FROM thread_ref r
		JOIN message m ON m.thread_id = r.thread_id AND m.mid = mid_
		JOIN message_state s ON s.message_id = m.id
		WHERE r.account_id = acc AND r.mid = mid_
		    AND s.lost_at IS NULL AND s.deleted_at IS NULL
		    AND s.mailbox_id IN (SELECT absent_folders(acc));
	END IF;
END $$;

-- Which of the rows `todo` of a batch are unplaced messages: the same bytes, or
-- where none are stored (too large) the same Message-ID and size.  Of several,
-- the one that lost its place last: what was expunged earlier was meant to go.
CREATE FUNCTION unplaced_same_bytes(acc uuid, box bigint, todo integer[],
    m_uid bigint[], m_mid bigint[], m_size bigint[],
    m_internal timestamptz[], m_blob integer[], b_digest bytea[],
    OUT i integer[], OUT ids bigint[])
LANGUAGE sql STABLE AS $$
	WITH want AS (
		SELECT t AS i, b.id AS blob_id, m_mid[t] AS mid,
		    m_size[t] AS size, m_internal[t] AS at, row_number() OVER (PARTITION BY b.id,
		    CASE WHEN b.id IS NULL THEN m_mid[t] END
		    ORDER BY m_uid[t]) AS k
		FROM unnest(todo) t
		LEFT JOIN LATERAL (SELECT id FROM blob
		    WHERE digest = b_digest[m_blob[t]] LIMIT 1) b ON true
		WHERE b.id IS NOT NULL OR m_blob[t] IS NULL
	), found AS (
		SELECT s.* FROM (SELECT DISTINCT blob_id FROM want
		    WHERE blob_id IS NOT NULL) w
		CROSS JOIN LATERAL (SELECT * FROM message_state
		    WHERE account_id = acc AND blob_id = w.blob_id
		        AND lost_at IS NOT NULL OFFSET 0) s
		WHERE s.deleted_at IS NULL
		    OR s.lost_at > now() - interval '7 days'
		UNION
		SELECT s.* FROM (SELECT DISTINCT blob_id, mid, size FROM want
		    WHERE blob_id IS NULL
		        OR EXISTS (SELECT absent_folders(acc))) w
		CROSS JOIN LATERAL unplaced_with_mid(acc, w.mid) s
		JOIN message m ON m.id = s.message_id
		WHERE s.blob_id IS NOT DISTINCT FROM w.blob_id
		    AND (w.blob_id IS NOT NULL OR m.size = w.size)
		UNION
		SELECT s.* FROM (SELECT DISTINCT blob_id, at FROM want
		    WHERE mid IS NULL AND blob_id IS NOT NULL
		        AND EXISTS (SELECT absent_folders(acc))) w
		JOIN message m ON m.account_id = acc
		    AND m.internal_date = w.at AND m.blob_id = w.blob_id
		JOIN message_state s ON s.message_id = m.id
		WHERE s.lost_at IS NULL AND s.deleted_at IS NULL
		    AND s.mailbox_id IN (SELECT absent_folders(acc))
	), have AS (
		SELECT blob_id, mid, message_id, row_number() OVER (
		    PARTITION BY blob_id,
		    CASE WHEN blob_id IS NULL THEN mid END
		    ORDER BY (mailbox_id = box AND deleted_at IS NULL) DESC,
		        deleted_at IS NULL DESC, lost_at DESC NULLS LAST,
		        uid, message_id) AS k
		FROM found
	)
	SELECT array_agg(w.i), array_agg(h.message_id)
	FROM want w JOIN have h ON h.k = w.k
	    AND (h.blob_id = w.blob_id OR h.blob_id IS NULL
	        AND w.blob_id IS NULL AND h.mid = w.mid)
$$;

-- Rows without a place whose Message-ID, size and date are those of a place.
-- recognised: the places (from 1) that need no download.
CREATE FUNCTION recognise(acc uuid, box bigint, gen bigint, p_uid bigint[],
    p_flags integer[], p_keywords text[], p_modseq bigint[], p_size bigint[],
    p_internal timestamptz[], p_mid bigint[],
    OUT recognised integer[], OUT updated bigint[], OUT threads bigint[],
    OUT stored bigint)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off AS $$
DECLARE
	delta bigint := 0;
BEGIN
	WITH want AS (
		SELECT i, p_mid[i] AS mid, p_size[i] AS size,
		    p_internal[i] AS at, row_number() OVER (
		    PARTITION BY p_mid[i], p_size[i], p_internal[i]
		    ORDER BY p_uid[i]) AS k
		FROM generate_subscripts(p_uid, 1) i
		WHERE p_mid[i] IS NOT NULL
		    AND (SELECT s.message_id FROM message_state s
		        WHERE s.mailbox_id = box AND s.uid = p_uid[i]) IS NULL
	), have AS (
		SELECT s.message_id, m.mid, m.size, m.internal_date AS at,
		    row_number() OVER (
		    PARTITION BY m.mid, m.size, m.internal_date
		    ORDER BY (s.mailbox_id = box AND s.deleted_at IS NULL) DESC,
		        s.deleted_at IS NULL DESC, s.lost_at DESC NULLS LAST,
		        s.message_id) AS k
		FROM (SELECT DISTINCT mid FROM want) w
		CROSS JOIN LATERAL unplaced_with_mid(acc, w.mid) s
		JOIN message m ON m.id = s.message_id
	)
	SELECT array_agg(w.i ORDER BY w.i), array_agg(h.message_id ORDER BY w.i)
	INTO recognised, updated
	FROM want w JOIN have h USING (mid, size, at, k);
	IF recognised IS NOT NULL THEN
		delta := give_place(acc, box, updated,
		    pick(p_uid, recognised), pick(p_flags, recognised),
		    pick(p_keywords, recognised),
		    pick(p_modseq, recognised));
	END IF;
	-- Places that had found their row in an earlier, interrupted try.
	SELECT array_agg(i ORDER BY i) INTO recognised
	FROM generate_subscripts(p_uid, 1) i
	CROSS JOIN LATERAL (SELECT deleted_at FROM message_state
	    WHERE mailbox_id = box AND uid = p_uid[i] LIMIT 1) s
	WHERE s.deleted_at IS NULL;
	recognised := coalesce(recognised, '{}');
	updated := coalesce(updated, '{}');
	threads := threads_of(updated);
	stored := mailbox_advance(acc, box, gen, NULL, delta);
END $$;

-- --- gone ---------------------------------------------------------------------

-- The newer of two rows of the same bytes becomes the older one, with its place,
-- its flags and what the application has changed of it.
CREATE FUNCTION twins_join(acc uuid, old_ids bigint[], new_ids bigint[])
    RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
	boxes bigint[];
	uids bigint[];
	modseqs bigint[];
	threads bigint[];
BEGIN
	SELECT array_agg(s.mailbox_id ORDER BY k), array_agg(s.uid ORDER BY k),
	    array_agg(s.modseq ORDER BY k)
	INTO boxes, uids, modseqs
	FROM generate_subscripts(new_ids, 1) k
	JOIN message_state s ON s.message_id = new_ids[k];
	-- Not to be found again: it has never been a message.
	UPDATE message_state SET uid = NULL, deleted_at = now(),
	    lost_at = NULL, twin_since = NULL
	WHERE message_id = ANY (new_ids);
	threads := thread_count(new_ids, -1);
	UPDATE message_state s SET mailbox_id = boxes[k], uid = uids[k],
	    modseq = modseqs[k], flags = t.flags, keywords = t.keywords,
	    deleted_at = NULL, lost_at = NULL
	FROM generate_subscripts(old_ids, 1) k
	JOIN message_state t ON t.message_id = new_ids[k]
	WHERE s.message_id = old_ids[k] AND s.account_id = acc;
	PERFORM message_redate(old_ids, (SELECT array_agg(m.internal_date
	    ORDER BY k) FROM generate_subscripts(new_ids, 1) k
	    JOIN message m ON m.id = new_ids[k]));
	UPDATE changes c SET message_id = old_ids[k]
	FROM generate_subscripts(new_ids, 1) k
	WHERE c.account_id = acc AND c.message_id = new_ids[k];
	UPDATE drafts d SET message_id = old_ids[k]
	FROM generate_subscripts(new_ids, 1) k
	WHERE d.account_id = acc AND d.message_id = new_ids[k];
	UPDATE message_state s SET flags = flags_with(s.flags, p),
	    keywords = keywords_with(s.keywords, p)
	FROM pending_flags p
	WHERE p.account_id = acc AND s.message_id = p.message_id
	    AND s.message_id = ANY (old_ids);
	RETURN threads;
END $$;

-- Messages whose places in this folder are no more.  Where a row of the same
-- bytes was made elsewhere within a day, it was a move seen from its end:
-- `moved` keep their ids, and the rows made are among the deleted.
-- Deleting a copy is no move: the row made must be the younger of the two.
CREATE FUNCTION messages_gone(acc uuid, box bigint, ids bigint[],
    OUT moved bigint[], OUT deleted bigint[], OUT threads bigint[])
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_hashjoin = off
    SET enable_mergejoin = off AS $$
DECLARE
	twins bigint[];
BEGIN
	WITH gone AS (
		SELECT s.message_id, s.blob_id, s.twin_since, row_number() OVER (
		    PARTITION BY s.blob_id ORDER BY s.message_id) AS k
		FROM message_state s
		WHERE s.message_id = ANY (ids) AND s.blob_id IS NOT NULL
	), twin AS (
		SELECT t.message_id, t.blob_id, t.twin_since, row_number() OVER (
		    PARTITION BY t.blob_id
		    ORDER BY t.twin_since DESC, t.message_id DESC) AS k
		FROM (SELECT DISTINCT blob_id FROM gone) g
		CROSS JOIN LATERAL (SELECT * FROM message_state
		    WHERE account_id = acc AND blob_id = g.blob_id
		        AND twin_since IS NOT NULL OFFSET 0) t
		WHERE t.twin_since > now() - interval '1 day'
		    AND t.mailbox_id <> box AND t.uid IS NOT NULL
		    AND t.deleted_at IS NULL AND t.lost_at IS NULL
	)
	SELECT array_agg(g.message_id), array_agg(t.message_id)
	INTO moved, twins
	FROM gone g JOIN twin t USING (blob_id, k)
	WHERE g.twin_since IS NULL OR g.twin_since < t.twin_since;
	IF moved IS NOT NULL THEN
		threads := twins_join(acc, moved, twins);
		SELECT array_agg(id) INTO ids FROM unnest(ids) id
		WHERE id <> ALL (moved);
	END IF;
	UPDATE message_state SET deleted_at = now(), lost_at = now()
	WHERE message_id = ANY (ids);
	threads := coalesce(threads, '{}') || thread_count(ids, -1);
	deleted := ARRAY(SELECT id FROM unnest(ids || twins) id ORDER BY id);
	moved := coalesce(moved, '{}');
END $$;

-- --- UIDVALIDITY --------------------------------------------------------------

-- UIDs are void (R-SYNC-6): the folder says so at once, and mailbox_void() takes
-- them from the rows.  Not looked at before that is done.
CREATE FUNCTION mailbox_remap(acc uuid, box bigint, gen bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM mailbox_advance(acc, box, gen, '{0,0,0,0,0,0}', 0);
	UPDATE mailbox SET is_remapping = true, unseen = 0 WHERE id = box;
	-- Its UIDs are those of other messages now.
	DELETE FROM quarantine WHERE mailbox_id = box AND uid_from <> 0;
END $$;

-- The ids that the server gives these folders (RFC 8474).  Where a folder had
-- another one, another folder has its name now: its UIDs are void, too.
CREATE FUNCTION mailbox_objects(acc uuid, boxes bigint[], objects text[])
    RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM mailbox_remap(acc, b.id, b.generation)
	FROM unnest(boxes, objects) o(box, id)
	JOIN mailbox b ON b.id = o.box
	WHERE b.account_id = acc AND b.deleted_at IS NULL
	    AND b.object_id <> o.id;
	UPDATE mailbox b SET object_id = o.id
	FROM unnest(boxes, objects) o(box, id)
	WHERE b.id = o.box AND b.account_id = acc
	    AND b.object_id IS DISTINCT FROM o.id;
END $$;

-- A slice.  Deleted rows lose their UID as well: it may mean another message
-- now.  False when there was nothing to do.
CREATE FUNCTION mailbox_void(acc uuid, box bigint, max_rows integer)
    RETURNS boolean
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
	done bigint;
	last bigint;
	ids bigint[];
BEGIN
	SELECT flag_scan_uid INTO done FROM mailbox
	WHERE id = box AND account_id = acc AND is_remapping
	    AND uidvalidity = 0 AND deleted_at IS NULL;
	IF NOT FOUND THEN
		RETURN false;  -- a sibling has done it
	END IF;
	SELECT array_agg(s.message_id), max(s.uid) INTO ids, last
	FROM (SELECT message_id, uid FROM message_state
	    WHERE mailbox_id = box AND uid > done
	    ORDER BY uid LIMIT max_rows) s;
	IF ids IS NULL THEN
		UPDATE mailbox SET messages = 0 WHERE id = box;
		RETURN false;
	END IF;
	UPDATE message_state SET uid = NULL, modseq = 0,
	    lost_at = coalesce(lost_at, now())
	WHERE message_id = ANY (ids);
	UPDATE mailbox SET flag_scan_uid = last WHERE id = box;
	RETURN true;
END $$;

-- A slice of what was not found again when all of the folder has been looked
-- at: deleted.  With the last one the remapping is complete.
CREATE FUNCTION mailbox_settle(acc uuid, box bigint, gen bigint,
    max_rows integer, OUT moved bigint[], OUT deleted bigint[],
    OUT threads bigint[], OUT has_more boolean)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off AS $$
DECLARE
	ids bigint[];
BEGIN
	PERFORM mailbox_advance(acc, box, gen, NULL, 0);
	ids := ARRAY(SELECT message_id FROM message_state
	    WHERE mailbox_id = box AND uid IS NULL AND deleted_at IS NULL
	    ORDER BY message_id LIMIT max_rows);
	SELECT g.moved, g.deleted, g.threads INTO moved, deleted, threads
	FROM messages_gone(acc, box, ids) g;
	has_more := cardinality(ids) = max_rows;
	IF NOT has_more THEN
		UPDATE mailbox SET is_remapping = false WHERE id = box;
	END IF;
END $$;

-- --- folders ------------------------------------------------------------------

-- Absent from LIST: its messages may turn up elsewhere (absent_folders()).  They
-- keep their places, for the folder may be back.
CREATE FUNCTION mailbox_missing(acc uuid, box bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	UPDATE mailbox SET missing_since = coalesce(missing_since, now())
	WHERE id = box AND account_id = acc AND deleted_at IS NULL;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'folder % no longer exists', box
		    USING ERRCODE = 'MH002';
	END IF;
END $$;

-- Listed (again), perhaps with another role.
CREATE FUNCTION mailbox_update(acc uuid, box bigint, delimiter_ text,
    role_ text, is_selectable_ boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	UPDATE mailbox SET delimiter = delimiter_, role = nullif(role_, ''),
	    is_selectable = is_selectable_, missing_since = NULL
	WHERE id = box AND account_id = acc AND deleted_at IS NULL;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'folder % no longer exists', box
		    USING ERRCODE = 'MH002';
	END IF;
END $$;

-- Another name.  Whether the UIDs still mean the same messages nobody says: they
-- are compared, with what tells messages apart, at the next look.
CREATE FUNCTION mailbox_rename(acc uuid, box bigint, wire_ bytea, path_ text)
    RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	UPDATE mailbox SET wire = wire_, path = path_, missing_since = NULL,
	    parked_until = NULL, park_reason = '', park_failures = 0,
	    doubt = 'renamed', generation = generation + 1
	WHERE id = box AND account_id = acc AND deleted_at IS NULL;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'folder % no longer exists', box
		    USING ERRCODE = 'MH002';
	END IF;
END $$;

-- Gone for good; mailbox_empty() does the rest.
CREATE FUNCTION mailbox_vanish(acc uuid, box bigint) RETURNS void
LANGUAGE sql AS $$
	UPDATE mailbox SET deleted_at = now(), is_emptying = true,
	    flag_scan_uid = 0, generation = generation + 1
	WHERE id = box AND account_id = acc AND deleted_at IS NULL;
	DELETE FROM quarantine WHERE mailbox_id = box;
$$;

-- A slice of the messages of a folder that is gone: by UID, then those without.
CREATE FUNCTION mailbox_empty(acc uuid, box bigint, max_rows integer,
    OUT moved bigint[], OUT deleted bigint[], OUT threads bigint[],
    OUT has_more boolean)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
	done bigint;
	last bigint;
	ids bigint[];
BEGIN
	SELECT flag_scan_uid INTO done FROM mailbox
	WHERE id = box AND account_id = acc AND is_emptying;
	has_more := FOUND;
	SELECT array_agg(s.message_id), max(s.uid) INTO ids, last
	FROM (SELECT message_id, uid FROM message_state
	    WHERE mailbox_id = box AND uid > done AND deleted_at IS NULL
	    ORDER BY uid LIMIT max_rows) s
	WHERE has_more;
	IF ids IS NULL THEN
		ids := ARRAY(SELECT message_id FROM message_state
		    WHERE mailbox_id = box AND uid IS NULL
		        AND deleted_at IS NULL
		    ORDER BY message_id LIMIT max_rows);
		has_more := has_more AND cardinality(ids) = max_rows;
	END IF;
	SELECT g.moved, g.deleted, g.threads INTO moved, deleted, threads
	FROM messages_gone(acc, box, ids) g;
	UPDATE mailbox SET flag_scan_uid = coalesce(last, flag_scan_uid),
	    is_emptying = has_more, messages = CASE WHEN has_more
	    THEN greatest(0, messages - cardinality(ids)) ELSE 0 END
	WHERE id = box;
END $$;
