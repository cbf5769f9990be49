-- A metric that one run of a pair logs is logged by the other.
-- severity: warn
-- blocking: false
with sides as (
    select
        pair_id,
        metric_id,
        bool_or(baseline_kind is not null) as in_baseline,
        bool_or(candidate_kind is not null) as in_candidate
    from int_pair_point
    group by pair_id, metric_id
)

select
    pairs.migration,
    pairs.baseline_run_name,
    pairs.candidate_run_name,
    metrics.metric,
    case when sides.in_baseline then 'baseline' else 'candidate' end as logged_by
from sides
inner join dim_migration as pairs on sides.pair_id = pairs.pair_id
inner join dim_metric as metrics on sides.metric_id = metrics.metric_id
where not (sides.in_baseline and sides.in_candidate)
order by pairs.migration, metrics.metric
