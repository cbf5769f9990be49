-- A run logs every step between its first and its last, or every so many.
-- severity: warn
-- blocking: false
select
    migration,
    run_name,
    step_count,
    missing_steps
from mart_run_health
where missing_steps > 0
order by missing_steps desc, run_name asc
