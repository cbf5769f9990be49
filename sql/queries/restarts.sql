-- Which runs were restarted, and which steps did they log twice?
-- test: count(*) = 0
-- planted: count(*) = 1 and min(restarts) = 1 and min(first_repeated_step) = 150 and min(repeated_steps) = 1
select
    runs.migration,
    runs.run_name,
    runs.attempt_count - 1 as restarts,
    count(steps.step) as repeated_steps,
    min(steps.step) as first_repeated_step,
    max(steps.step) as last_repeated_step
from dim_run as runs
left join dim_step as steps on runs.run_id = steps.run_id and not steps.is_current
where runs.attempt_count > 1
group by runs.migration, runs.run_name, restarts
order by restarts desc, runs.migration asc, runs.run_name asc
