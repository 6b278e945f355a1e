-- Idempotency receipts, conversations that are deleted, and those with messages that have expired.

-- name: receipt
-- What an idempotency key answered.
select start_seq as start, end_seq as end, rev, fingerprint from hitherto.receipt
where tenant = %(tenant)s and key_hash = %(key_hash)s;

-- name: insert_receipt
-- Remember what an idempotency key answered.
insert into hitherto.receipt (tenant, key_hash, conversation, fingerprint, start_seq, end_seq, rev, created_at)
values (%(tenant)s, %(key_hash)s, %(ref)s, %(fingerprint)s, %(start)s, %(end)s, %(rev)s, %(now)s);

-- name: forget_receipts_of
-- A deleted conversation's receipts still answer, but tell nothing of what was written.
update hitherto.receipt set fingerprint = null, conversation = null
where tenant = %(tenant)s and conversation = %(ref)s;

-- name: delete_conversation
-- Erase a conversation; messages and digests go with it.
delete from hitherto.conversation where tenant = %(tenant)s and ref = %(ref)s;

-- name: due
-- Conversations with expired messages that are not erased yet, read from an index of such rows alone; the volatile
-- clock_timestamp() would keep it from being used.
select * from hitherto.due_conversations(%(tenant)s, %(limit)s);

-- name: tenants_with_old_receipts
select * from hitherto.tenants_with_old_receipts(%(older_than)s);

-- name: forget_receipts
-- Drop idempotency receipts of a tenant beyond their retention.
delete from hitherto.receipt where tenant = %(tenant)s and created_at < statement_timestamp() - %(older_than)s::interval;
