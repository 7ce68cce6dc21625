"""The SQLite store with one guard taken out at a time, and the check of the kit that has to notice."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """`old`, which stands once in that module of the store, becomes `new`; then `check` must fail."""

    name: str
    file: str
    old: str
    new: str
    check: str


MUTANTS = [
    # Appends.
    Mutant(
        "an append does not look at its claim",
        "tasks.py",
        "    check_claim(row, claim)\n    if row.last_seq",
        "    if row.last_seq",
        "a_stale_claim_writes_nothing",
    ),
    Mutant(
        "the fence is not compared",
        "tasks.py",
        "if (row.fence, row.token) != (claim.fence, claim.token):",
        "if row.token != claim.token:",
        "fence_and_token_must_both_match",
    ),
    Mutant(
        "the token is not compared",
        "tasks.py",
        "if (row.fence, row.token) != (claim.fence, claim.token):",
        "if row.fence != claim.fence or row.token is None:",
        "fence_and_token_must_both_match",
    ),
    Mutant(
        "a repeated append is not recognised",
        "tasks.py",
        "    if append.id == row.last_append:\n",
        "    if False:\n",
        "an_append_repeated_is_done_once",
    ),
    Mutant(
        "a repeated append needs its claim",
        "tasks.py",
        "    if append.id == row.last_append:\n",
        "    check_claim(row, claim)\n    if append.id == row.last_append:\n",
        "an_append_repeated_is_done_once",
    ),
    Mutant(
        "a new task has an append's id",
        "schema.py",
        "    last_append BLOB,\n",
        "    last_append BLOB DEFAULT x'',\n",
        "an_append_with_no_id_before_it_is_new",
    ),
    Mutant(
        "records may leave a gap",
        "tasks.py",
        "    _check_dense(append.lines, row.last_seq)\n",
        "",
        "a_refused_append_changes_nothing",
    ),
    Mutant(
        "the blobs of an append are not kept",
        "tasks.py",
        "    hold(db, row.id, append.blobs)\n",
        "",
        "an_append_lands_whole",
    ),
    Mutant(
        "the version of a row goes down",
        "tasks.py",
        '    if append.version > 1:\n        db.run("UPDATE task SET version = max(version, ?)',
        '    if True:\n        db.run("UPDATE task SET version = ?',
        "newer_tasks_are_passed_over",
    ),
    Mutant(
        "every append resets the attempts",
        "tasks.py",
        '({"attempts": 0} if append.progress else {})',
        '{"attempts": 0}',
        "attempts_count_claims_since_progress",
    ),
    # Reading.
    Mutant(
        "a kind cannot be read alone",
        "reads.py",
        "name in only or ",
        "",
        "read_gives_what_is_asked_for",
    ),
    Mutant(
        "reading goes past `through`",
        "reads.py",
        '    where = "id > ? AND id <= ?"\n',
        '    where = "id > ? AND id <= ? + 1000"\n',
        "read_gives_what_is_asked_for",
    ),
    Mutant(
        "records without a message are read with those that have one",
        "reads.py",
        " AND id <= ? AND message ORDER BY id",
        " AND id <= ? ORDER BY id",
        "messages_are_those_of_the_records",
    ),
    Mutant(
        "pages of rows go by the time alone",
        "reads.py",
        '"(created_at, task) > (?, ?)"',
        "\"created_at > ? AND ? != ''\"",
        "pages_of_rows_leave_nothing_out",
    ),
    # Inbox.
    Mutant(
        "items are consumed in any order",
        "tasks.py",
        "AND body IS NOT NULL ORDER BY n LIMIT ?",
        "AND body IS NOT NULL ORDER BY n DESC LIMIT ?",
        "items_are_consumed_once_and_in_order",
    ),
    Mutant(
        "an item can be consumed again",
        "tasks.py",
        "INDEXED BY inbox_unread WHERE task = ? AND body IS NOT NULL ORDER BY n LIMIT ?",
        "WHERE task = ? ORDER BY n LIMIT ?",
        "items_are_consumed_once_and_in_order",
    ),
    Mutant(
        "a consumed item keeps its body",
        "tasks.py",
        "UPDATE inbox SET body = NULL WHERE task = ? AND n = ?",
        "UPDATE inbox SET body = body WHERE task = ? AND n = ?",
        "a_consumed_body_is_dropped",
    ),
    Mutant(
        "a consumed item takes its key with it",
        "tasks.py",
        "UPDATE inbox SET body = NULL WHERE task = ? AND n = ?",
        "UPDATE inbox SET body = NULL, key = n WHERE task = ? AND n = ?",
        "a_dedupe_key_is_accepted_once_for_ever",
    ),
    Mutant(
        "a post does not look at the keys",
        "tasks.py",
        '    if db.one("SELECT 1 FROM inbox WHERE task = ? AND key = ?", task, post.key):\n',
        "    if False:\n",
        "a_dedupe_key_is_accepted_once_for_ever",
    ),
    Mutant(
        "keys are those of the store",
        "tasks.py",
        '"SELECT 1 FROM inbox WHERE task = ? AND key = ?", task, post.key)',
        '"SELECT 1 FROM inbox WHERE key = ?", post.key)',
        "keys_of_other_tasks_are_other_keys",
    ),
    Mutant(
        "a task waits over unread items",
        "tasks.py",
        '    if append.status != "running" and row.unread > len(append.consume):\n',
        "    if False:\n",
        "nobody_sleeps_over_mail",
    ),
    Mutant(
        "a post wakes nobody",
        "tasks.py",
        "WHERE id = ? AND status = 'waiting'\",",
        "WHERE id = ? AND status = 'nothing'\",",
        "nobody_sleeps_over_mail",
    ),
    Mutant(
        "a post does not wake a task that is kept",
        "tasks.py",
        "WHERE id = ? AND status = 'waiting'\",",
        "WHERE id = ? AND status = 'waiting' AND token IS NULL\",",
        "mail_wakes_a_task_that_is_kept",
    ),
    Mutant(
        "an ended task takes any post",
        "tasks.py",
        'if row is None or (row[1] == "ended" and post.kind != "erase"):',
        "if row is None:",
        "an_ended_task_takes_only_an_erasure",
    ),
    Mutant(
        "an ended task takes no erasure",
        "tasks.py",
        '(row[1] == "ended" and post.kind != "erase")',
        'row[1] == "ended"',
        "an_ended_task_takes_only_an_erasure",
    ),
    # Claims and leases.
    Mutant(
        "a purge does not look at its claim",
        "claims.py",
        "    check_claim(row, claim)\n",
        "",
        "a_stale_claim_writes_nothing",
    ),
    Mutant(
        "an old claim releases the new one",
        "tasks.py",
        "if row is None or (row[4], row[5]) != (claim.fence, claim.token):",
        "if row is None:",
        "a_stale_claim_writes_nothing",
    ),
    Mutant(
        "a claim has the fence of the one before",
        "claims.py",
        "        fence=fence + 1,\n",
        "        fence=max(fence, 1),\n",
        "every_claim_has_a_higher_fence",
    ),
    Mutant(
        "leases go by the wall clock",
        "leases.py",
        "        db.clock.monotonic() + seconds,\n",
        "        db.clock.now() + seconds,\n",
        "wall_clock_jumps_change_no_claim",
    ),
    Mutant(
        "a lost worker may claim again",
        "claims.py",
        "    if ran_out(db, worker):\n        raise",
        "    if False:\n        raise",
        "a_lease_that_ran_out_stays_so",
    ),
    Mutant(
        "a renewal revives a lease",
        "claims.py",
        "    if ran_out(db, worker):\n        return False\n",
        "",
        "a_lease_that_ran_out_stays_so",
    ),
    Mutant(
        "a lease that ran out is forgotten with the last task",
        "leases.py",
        " AND (boot != ?2 OR until >= ?3)",
        " AND (boot != ?2 OR until >= ?3 OR 1)",
        "a_lease_that_ran_out_stays_so",
    ),
    Mutant(
        "a further claim does not extend the lease",
        "leases.py",
        " ON CONFLICT (worker) DO UPDATE SET until = ?3",
        " ON CONFLICT (worker) DO NOTHING",
        "one_lease_covers_all_a_worker_holds",
    ),
    Mutant(
        "only a running task can be lost",
        "claims.py",
        "(status != 'ended' OR unread > 0)",
        "status = 'running'",
        "a_lost_task_is_claimable_whatever_its_status",
    ),
    Mutant(
        "every claim but the first follows an unreleased one",
        "claims.py",
        "        unreleased=token is not None,\n",
        "        unreleased=fence > 0,\n",
        "unreleased_says_that_a_claim_was_not_given_up",
    ),
    Mutant(
        "versions are not looked at",
        "claims.py",
        '    where = "version <= ?"\n',
        '    where = "version <= 1000 + ?"\n',
        "newer_tasks_are_passed_over",
    ),
    Mutant(
        "those that wait longest come last",
        "claims.py",
        "ORDER BY turn LIMIT ?",
        "ORDER BY turn DESC LIMIT ?",
        "those_that_wait_longest_come_first",
    ),
    Mutant(
        "the tasks of lost workers come by the names of these",
        "leases.py",
        " ORDER BY boot = ?1, until",
        " ORDER BY worker",
        "a_lost_task_is_not_kept_waiting_by_later_ones",
    ),
    Mutant(
        "a second post sends a task to the end of the line",
        "tasks.py",
        '" THEN coalesce(turn, (SELECT',
        '" THEN coalesce(NULL, (SELECT',
        "those_that_wait_longest_come_first",
    ),
    # Timers.
    Mutant(
        "a timer that fired stays",
        "claims.py",
        '            db.run("DELETE FROM timer WHERE task = ? AND name = ?", id, name)\n',
        "",
        "a_timer_fires_once_and_never_early",
    ),
    Mutant(
        "a timer with text fires in any wait",
        "claims.py",
        " AND (text = '' OR reason = 'idle')\nUNION",
        "\nUNION",
        "a_timer_with_text_waits_until_its_task_is_idle",
    ),
    Mutant(
        "timers go by the monotonic clock",
        "claims.py",
        "db.all(DUE, db.clock.now(), upto(limit))",
        "db.all(DUE, db.clock.monotonic() + 1_700_000_000, upto(limit))",
        "a_timer_goes_by_the_wall_clock",
    ),
    Mutant(
        "timers fire in any order",
        "claims.py",
        "ORDER BY 1 LIMIT ?2",
        "ORDER BY 1 DESC LIMIT ?2",
        "due_timers_fire_in_the_order_of_their_times",
    ),
    Mutant(
        "an ended task keeps its timers",
        "tasks.py",
        '    if "ended" in (row.status, append.status):\n',
        "    if False:\n",
        "an_ended_task_keeps_no_timer",
    ),
    Mutant(
        "a retry that came due does not make the task ready",
        "claims.py",
        'change(db, id, status="ready", reason="", retry_at=None)',
        "change(db, id, retry_at=None)",
        "a_retry_makes_a_waiting_task_ready",
    ),
    # Creating, erasing, sweeping.
    Mutant(
        "a task may follow what does not exist",
        "tasks.py",
        "    if new.parent:\n",
        "    if False:\n",
        "a_task_is_created_whole_or_not_at_all",
    ),
    Mutant(
        "children are not looked at before the records are written",
        "tasks.py",
        "        _check_new(db, new)\n\n    _write_lines(db, row.id, append.lines)\n",
        "        pass\n\n    _write_lines(db, row.id, append.lines)\n",
        "a_refused_append_changes_nothing",
    ),
    Mutant(
        "a spawn key counts for every parent",
        "tasks.py",
        "\"SELECT task FROM task WHERE parent = ? AND key = ? AND key != ''\", new.parent, new.key)",
        '"SELECT task FROM task WHERE key = ?", new.key)',
        "a_spawn_key_makes_one_child",
    ),
    Mutant(
        "a purge leaves the snapshot",
        "claims.py",
        '    db.run("DELETE FROM part WHERE task = ?", row.id)\n',
        "",
        "a_purge_leaves_no_trace",
    ),
    Mutant(
        "a blob goes with the first task that drops it",
        "claims.py",
        " AND NOT EXISTS (SELECT 1 FROM hold WHERE hold.sha256 = ?1)",
        "",
        "a_blob_lives_as_long_as_a_task_holds_it",
    ),
    Mutant(
        "trees are swept by the time of their root alone",
        "claims.py",
        "(status != 'ended' OR updated_at >= ?1)",
        "root = task AND (status != 'ended' OR updated_at >= ?1)",
        "sweep_deletes_whole_trees",
    ),
    Mutant(
        "a tree is swept that another continues",
        "claims.py",
        "AND other.root != over.root",
        "AND 0",
        "sweep_keeps_what_others_continue",
    ),
]
