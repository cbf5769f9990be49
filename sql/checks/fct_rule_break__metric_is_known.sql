-- Every broken rule is charged to a metric.
-- severity: error
-- blocking: true
select
    fct_rule_break.metric,
    count(*) as row_count
from fct_rule_break
left join dim_metric on fct_rule_break.metric = dim_metric.metric
where dim_metric.metric is null
group by fct_rule_break.metric
