-- Every broken rule belongs to a run.
-- severity: error
-- blocking: true
select
    fct_rule_break.run_id,
    count(*) as row_count
from fct_rule_break
left join dim_run on fct_rule_break.run_id = dim_run.run_id
where dim_run.run_id is null
group by fct_rule_break.run_id
