-- Segments: entries packed side by side.

-- name: index_stale_segment
-- A segment with deleted entries.
select segment from hitherto.search_segment
where tenant = %(tenant)s and scope = %(ref)s and stale order by segment limit 1;

-- name: index_members
-- The entries of a segment.
select no, kind, start_char > 0, origin, place, length, extract(epoch from said_at)::float8, hashes, counts
from hitherto.search_entry
where tenant = %(tenant)s and scope = %(ref)s and no >= %(first)s and no < %(stop)s order by no;

-- name: index_member_codes
-- The codes of a segment's entries in a space.
select no, code from hitherto.search_vector
where tenant = %(tenant)s and scope = %(ref)s and space = %(space)s and no >= %(first)s and no < %(stop)s;

-- name: index_fillings
-- How far the scope's entries have vectors, and codes in segments, in each space.
select space, embedded, coded from hitherto.search_filling where tenant = %(tenant)s and scope = %(ref)s;

-- name: index_drop_segment
-- Delete a segment, to rebuild it or because it has no entries left.
with postings as (
    delete from hitherto.search_posting where tenant = %(tenant)s and scope = %(ref)s and segment = %(segment)s
)
delete from hitherto.search_segment where tenant = %(tenant)s and scope = %(ref)s and segment = %(segment)s;

-- name: index_segment
-- Insert the columns of a segment.
insert into hitherto.search_segment (tenant, scope, segment, lengths, kinds, origins, places, times)
values (%(tenant)s, %(ref)s, %(segment)s, %(lengths)s, %(kinds)s, %(origins)s, %(places)s, %(times)s);

-- name: index_postings
-- Insert the postings of a segment.
insert into hitherto.search_posting (tenant, scope, term, segment, offsets, counts)
select s.tenant, s.ref, p.term, %(segment)s, p.offsets, p.counts
from hitherto.search_scope s
cross join unnest(%(terms)b::bigint[], %(offsets)b::bytea[], %(counts)b::bytea[]) as p (term, offsets, counts)
where s.tenant = %(tenant)s and s.ref = %(ref)s
returning segment;

-- name: index_drop_codes
-- Delete the codes of a segment, to rebuild them.
delete from hitherto.search_codes
where tenant = %(tenant)s and scope = %(ref)s and space = %(space)s and segment = %(segment)s;

-- name: index_codes
-- Insert the codes of a segment.
insert into hitherto.search_codes (tenant, scope, space, segment, codes)
values (%(tenant)s, %(ref)s, %(space)s, %(segment)s, %(codes)s);

-- name: index_coded
-- Record up to where the codes of the scope's entries are in segments.
update hitherto.search_filling set coded = %(coded)s where tenant = %(tenant)s and scope = %(ref)s and space = %(space)s;

-- name: index_packed
-- Record up to where the scope's entries are in segments.
update hitherto.search_scope set packed = %(packed)s where tenant = %(tenant)s and ref = %(ref)s;

-- name: index_tidy
-- Record that the scope has no stale segments, if it has none.
update hitherto.search_scope set stale = false
where tenant = %(tenant)s and ref = %(ref)s and not exists (
    select 1 from hitherto.search_segment g where g.tenant = %(tenant)s and g.scope = %(ref)s and g.stale);
