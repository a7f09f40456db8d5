-- Up Migration
-- A session that began on an empty log keeps the plans it made then, and read whole tables by them until statistics came:
-- at a thousand new streams a second that took most of an append's time.
alter function eventlog.append_batch(text[], integer[], integer[], uuid[], text[], json[], json[])
  set enable_seqscan = off;
