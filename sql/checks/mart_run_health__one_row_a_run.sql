-- A run has one row of health.
-- severity: error
-- blocking: true
select
    run_id,
    count(*) as row_count
from mart_run_health
group by run_id
having count(*) > 1
