-- The metric that another one repeats is there.
-- severity: error
-- blocking: true
select
    metrics.metric,
    metrics.duplicates_of
from dim_metric as metrics
left join dim_metric as originals on metrics.duplicates_of = originals.metric
where metrics.duplicates_of is not null and originals.metric is null
