-- Which pieces of the logs could not be read, and why?
-- test: count(*) = 0
-- planted: count(*) = 1 and any_value(reason) = 'broken JSON' and min(first_position) = 7
select
    runs.migration,
    runs.run_name,
    issues.source_file,
    issues.reason,
    count(*) as pieces,
    sum(issues.lost_points) as lost_points,
    min(issues.source_position) as first_position,
    arg_min(issues.snippet, issues.source_position) as first_snippet
from fct_parse_issue as issues
inner join dim_run as runs on issues.run_id = runs.run_id
where issues.source_position <> 0 or issues.lost_points is distinct from 0
group by runs.migration, runs.run_name, issues.source_file, issues.reason
order by pieces desc, runs.migration asc, runs.run_name asc
