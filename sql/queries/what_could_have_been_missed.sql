-- How large a shift would have gone unnoticed in each metric to look at first?
-- test: count(distinct metric) >= 5
-- test: bool_and(smallest_detectable_shift > 0)
select
    pairs.migration,
    pairs.candidate_run_name as candidate,
    onsets.metric,
    metrics.scale,
    onsets.smallest_detectable_shift,
    metrics.practical_limit,
    metrics.practical_limit_kind,
    onsets.step_count
from mart_divergence_onset as onsets
inner join dim_metric as metrics on onsets.metric = metrics.metric
inner join dim_migration as pairs on onsets.pair_id = pairs.pair_id
where
    pairs.pair_kind = 'migration'
    and onsets.onset_kind = 'drift'
    and onsets.is_censored
    and metrics.focus_rank is not null
    and onsets.smallest_detectable_shift is not null
order by pairs.migration, candidate, metrics.focus_rank, onsets.metric
