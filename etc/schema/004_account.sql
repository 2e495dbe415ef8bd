-- 004_account.sql - the life of an account.
--
-- Lock order everywhere: fence, then account.  Whoever may meet a predecessor
-- that was stopped in the middle of a transaction waits 200 ms for its lock,
-- not longer: the caller ends that session and tries again (store/account.c).

-- A new owner: nothing its predecessors send is committed any more.
CREATE FUNCTION account_take_over(acc uuid, owner_ text) RETURNS bigint
LANGUAGE sql SET lock_timeout = '200ms' AS $$
	UPDATE account_fence SET epoch = epoch + 1, owner = owner_
	WHERE account_id = acc RETURNING epoch
$$;

-- Changes the state if it is one of `expect` (empty: any).  Whatever ends
-- live raises the epoch, and so does every change to a state without syncing.
CREATE FUNCTION account_set_state(acc uuid, expect text[], state_ text,
    reason text) RETURNS boolean
LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
DECLARE
	was text;
BEGIN
	PERFORM FROM account_fence WHERE account_id = acc
	FOR NO KEY UPDATE;
	SELECT a.state INTO was FROM accounts a WHERE a.id = acc FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'no such account: %', acc
		    USING ERRCODE = 'MH002';
	END IF;
	IF cardinality(expect) > 0 AND was <> ALL (expect) THEN
		RETURN false;
	END IF;
	UPDATE accounts SET state = state_, state_reason = reason,
	    state_since = CASE WHEN was = state_ THEN state_since
	        ELSE now() END,
	    bootstrapped_at = CASE WHEN state_ = 'live'
	        THEN coalesce(bootstrapped_at, now())
	        ELSE bootstrapped_at END
	WHERE id = acc;
	IF was <> state_ AND (was = 'live'
	    OR state_ NOT IN ('bootstrapping', 'live')) THEN
		UPDATE account_fence SET epoch = epoch + 1, owner = ''
		WHERE account_id = acc;
	END IF;
	RETURN true;
END $$;

-- A failed pass; true when the account has gone to `error`.  Several children
-- may fail at once, each with what it knew of the account when it began: no
-- pause is shortened by another, and from the second refusal on the next login
-- is two minutes away (R-LIFE-6).
CREATE FUNCTION account_failed(acc uuid, text_ text, is_auth boolean,
    next_try timestamptz, refusals integer) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
	n integer;
BEGIN
	UPDATE accounts SET last_error = text_,
	    next_try_at = greatest(next_try_at, next_try,
	        CASE WHEN is_auth AND auth_failures > 0
	        THEN now() + interval '120 seconds' END),
	    auth_failures = auth_failures + is_auth::integer
	WHERE id = acc RETURNING auth_failures INTO n;
	IF NOT is_auth OR n < refusals THEN
		RETURN false;
	END IF;
	RETURN account_set_state(acc,
	    ARRAY['new', 'bootstrapping', 'live'], 'error', text_);
END $$;

-- disabled or error -> live, or bootstrapping with a job.  Decided under the
-- locks: a delete that was waiting for them has been seen or comes after.
CREATE FUNCTION account_enable(acc uuid, OUT state text, OUT job uuid)
LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
BEGIN
	PERFORM FROM account_fence WHERE account_id = acc
	FOR NO KEY UPDATE;
	SELECT CASE WHEN a.state = 'deleted' THEN NULL
	    WHEN a.state IN ('new', 'bootstrapping', 'live') THEN a.state
	    WHEN a.bootstrapped_at IS NOT NULL THEN 'live'
	    ELSE 'bootstrapping' END
	INTO state FROM accounts a WHERE a.id = acc FOR UPDATE;
	IF state IS NULL THEN
		RAISE EXCEPTION 'no such account: %', acc
		    USING ERRCODE = 'MH002';
	END IF;
	PERFORM account_set_state(acc, '{}', state, '');
	UPDATE accounts SET last_error = '', auth_failures = 0,
	    next_try_at = NULL
	WHERE id = acc;
	IF state IN ('new', 'bootstrapping') THEN
		job := job_add('bulk', 'sync_bootstrap_account', acc,
		    jsonb_build_object('account_id', acc));
	END IF;
END $$;

CREATE FUNCTION user_delete(id_ uuid) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	UPDATE users SET deleted_at = now()
	WHERE id = id_ AND deleted_at IS NULL;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'no such user: %', id_
		    USING ERRCODE = 'MH002';
	END IF;
	PERFORM account_set_state(a.id, '{}', 'deleted', 'user deleted')
	FROM (SELECT id FROM accounts WHERE user_id = id_
	    AND state <> 'deleted' ORDER BY id) a;
END $$;
