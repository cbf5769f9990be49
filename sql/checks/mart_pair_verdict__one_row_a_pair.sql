-- A pair has one verdict.
-- severity: error
-- blocking: true
select
    pair_id,
    count(*) as row_count
from mart_pair_verdict
group by pair_id
having count(*) > 1
