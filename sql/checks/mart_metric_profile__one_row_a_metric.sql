-- A metric of a run has one profile.
-- severity: error
-- blocking: true
select
    run_id,
    metric_id,
    count(*) as row_count
from mart_metric_profile
group by run_id, metric_id
having count(*) > 1
