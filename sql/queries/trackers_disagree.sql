-- Where do the logs that several trackers wrote of one run differ?
-- test: count(*) = 0
select
    runs.migration,
    runs.run_name,
    issues.source_file as log,
    issues.reason
from fct_parse_issue as issues
inner join dim_run as runs on issues.run_id = runs.run_id
where issues.source_position = 0 and issues.lost_points = 0
order by runs.migration, runs.run_name, issues.reason, issues.source_file
