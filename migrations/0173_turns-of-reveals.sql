comment on column read.enrichment_work.asked_by is
  'The partner that asked first; of a reveal''s work a keyed pseudonym of its partner; of work that an older release asked for: zeros.';
