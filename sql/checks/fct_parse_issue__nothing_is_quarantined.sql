-- Every piece of every log could be read.
-- severity: warn
-- blocking: false
select
    runs.migration,
    runs.run_name,
    issues.reason,
    count(*) as piece_count,
    min(issues.source_file) as first_file,
    min(issues.source_position) as first_position,
    sum(issues.lost_points) as lost_points
from fct_parse_issue as issues
inner join dim_run as runs on issues.run_id = runs.run_id
where issues.source_position <> 0 or issues.lost_points is distinct from 0
group by runs.migration, runs.run_name, issues.reason
order by piece_count desc, runs.run_name asc
