-- Under which names do the frameworks log a metric?
-- param metric: the metric = mismatch/mismatch_k3_kl
-- values metric: select metric from dim_metric_alias
-- test: count(*) >= 1 and count(*) filter (where framework = 'verl') >= 1
select
    aliases.framework,
    aliases.name,
    aliases.metric,
    aliases.equivalence,
    aliases.factor,
    aliases.note
from dim_metric_alias as aliases
where aliases.metric = $metric
order by aliases.framework, aliases.name
