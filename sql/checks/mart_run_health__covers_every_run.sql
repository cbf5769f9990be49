-- Every run has a row of health.
-- severity: error
-- blocking: true
select
    runs.run_id,
    runs.run_name
from dim_run as runs
left join mart_run_health as healths on runs.run_id = healths.run_id
where healths.run_id is null
