-- How much evaluation did each migrated run lose after its first drift, against the time before?
-- test: count(*) = 6
-- test: count(*) filter (where candidate = 'npu_attn_mask_at60' and first_onset_step between 59 and 61) = 3
-- test: bool_and(evaluations_after > 0) filter (where first_onset_step is not null)
-- test: bool_and(change is null) filter (where first_onset_step is null)
with evaluations as (
    select
        deltas.pair_id,
        deltas.metric,
        deltas.step,
        deltas.delta
    from mart_paired_delta as deltas
    inner join dim_metric as metrics on deltas.metric_id = metrics.metric_id
    where metrics.category = 'evaluation' and deltas.pair_kind = 'migration' and deltas.delta is not null
)

select
    pairs.migration,
    pairs.candidate_run_name as candidate,
    evaluations.metric,
    verdicts.first_onset_step,
    count(*) filter (where evaluations.step >= verdicts.first_onset_step) as evaluations_after,
    avg(evaluations.delta) filter (
        where verdicts.first_onset_step is null or evaluations.step < verdicts.first_onset_step
    ) as mean_delta_before,
    avg(evaluations.delta) filter (where evaluations.step >= verdicts.first_onset_step) as mean_delta_after,
    avg(evaluations.delta) filter (where evaluations.step >= verdicts.first_onset_step)
    - avg(evaluations.delta) filter (where evaluations.step < verdicts.first_onset_step) as change
from evaluations
inner join dim_migration as pairs on evaluations.pair_id = pairs.pair_id
inner join mart_pair_verdict as verdicts on evaluations.pair_id = verdicts.pair_id
group by pairs.migration, candidate, evaluations.metric, verdicts.first_onset_step
order by pairs.migration, candidate, evaluations.metric
