alter table read.reveal add column company_search text;
comment on column read.reveal.company_search is 'The name of the company that was found as searches compare it (searchKey in domain/kernel/text.ts); null: none, or completed by an earlier version and not rebuilt.';
comment on column read.reveal.company_key is 'MD5 of company_search, or of the name in lower case where that is null; null: no company, or completed before 0.3.0 and not rebuilt.';
