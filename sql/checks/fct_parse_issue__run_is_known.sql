-- Every quarantined piece belongs to a run.
-- severity: error
-- blocking: true
select
    fct_parse_issue.run_id,
    count(*) as row_count
from fct_parse_issue
left join dim_run on fct_parse_issue.run_id = dim_run.run_id
where dim_run.run_id is null
group by fct_parse_issue.run_id
