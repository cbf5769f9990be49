-- Every point belongs to a run.
-- severity: error
-- blocking: true
select
    fct_metric.run_id,
    count(*) as row_count
from fct_metric
left join dim_run on fct_metric.run_id = dim_run.run_id
where dim_run.run_id is null
group by fct_metric.run_id
