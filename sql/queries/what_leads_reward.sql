-- Which metrics move before the reward does, and by how many steps?
-- param metric: the metric that follows = reward/avg_raw_reward
-- values metric: select metric from mart_divergence_onset
-- param onset: kind of onset, drift or decouple = drift
-- values onset: select unnest(['drift', 'decouple'])
-- test: bool_and(candidate = 'npu_attn_mask_at60')
-- test: count(*) >= 5 and min(onset_step) between 59 and 61
-- test: bool_and(leads_by >= 0 or leads_by is null)
with followed as (
    select
        onsets.pair_id,
        onsets.onset_step,
        onsets.censored_at
    from mart_divergence_onset as onsets
    where onsets.metric = $metric and onsets.onset_kind = $onset
)

select
    pairs.migration,
    pairs.candidate_run_name as candidate,
    onsets.metric,
    onsets.stage,
    onsets.onset_step,
    followed.onset_step as followed_onset_step,
    followed.onset_step - onsets.onset_step as leads_by,
    case
        when followed.onset_step is null
            then followed.censored_at - onsets.onset_step
    end as leads_by_at_least
from mart_divergence_onset as onsets
inner join followed on onsets.pair_id = followed.pair_id
inner join dim_migration as pairs on onsets.pair_id = pairs.pair_id
where
    pairs.pair_kind = 'migration'
    and onsets.onset_kind = $onset
    and not onsets.is_censored
    and onsets.stage <> 'time'
    and onsets.metric <> $metric
    and (followed.onset_step is null or onsets.onset_step <= followed.onset_step)
order by pairs.migration, candidate, onsets.onset_step, onsets.metric
