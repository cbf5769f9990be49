-- A pair ranks a metric once.
-- severity: error
-- blocking: true
select
    pair_id,
    rank,
    metric,
    count(*) as row_count
from mart_first_drift
group by pair_id, rank, metric
having count(*) > 1
