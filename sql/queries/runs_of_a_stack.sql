-- Which runs ran on equal stacks, so that they are replicates of each other?
-- test: count(*) = 2 and max(runs) = 3 and min(runs) = 3
select
    runs.migration,
    runs.stack,
    count(*) as runs,
    string_agg(runs.run_name, ', ' order by runs.run_name) as run_names,
    min(runs.last_step) as shortest_run,
    count(distinct runs.log_precision) as log_precisions
from dim_run as runs
group by runs.migration, runs.stack
order by runs.migration asc, runs desc, runs.stack asc
