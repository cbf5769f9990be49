-- What table shows that a change of kernel, engine or hardware is safe: means, difference with interval, verdict?
-- param candidate: name of the candidate run = npu_attn_mask_at60
-- values candidate: select candidate_run_name from dim_migration where pair_kind = 'migration'
-- param steps: number of first steps that get a block of their own = 20
-- param others: number of drifted metrics besides those to look at first = 5
-- test: count(distinct block) = 2
-- test: bool_and(n = 20) filter (where block = 'first 20 steps' and metric = 'reward/avg_raw_reward')
-- test: count(*) filter (where block = 'all steps' and verdict like 'drift from step 6%') >= 3
-- test: count(*) filter (where metric = 'response/prompt_len/mean' and verdict = 'equal') = 2
-- test: bool_and(verdict like '1.3_ times slower from the first step') filter (where metric = 'task_time/p95')
-- test: count(*) filter (where verdict like '%not judged%') = 0
-- test: bool_and(low <= difference and difference <= high) filter (where low is not null)
with pairs as (
    select *
    from dim_migration
    where candidate_run_name = $candidate and pair_kind = 'migration'
),

drifts as (
    select
        pair_id,
        metric,
        step_axis,
        rank,
        onset_step
    from mart_first_drift
),

firsts as (
    select
        onsets.pair_id,
        onsets.metric,
        onsets.step_axis,
        onsets.is_censored,
        count(metrics.focus_rank) filter (where metrics.stage <> 'time') over (
            partition by onsets.pair_id
        ) as focus_metrics,
        row_number() over (
            partition by onsets.pair_id, metrics.stage = 'time'
            order by onsets.metric
        ) as place
    from mart_divergence_onset as onsets
    inner join dim_metric as metrics on onsets.metric = metrics.metric
    where onsets.onset_kind = 'first_diff'
),

chosen as (
    select
        firsts.pair_id,
        firsts.metric,
        firsts.step_axis,
        firsts.is_censored as is_equal,
        metrics.focus_rank,
        metrics.parity_class,
        metrics.stage,
        drifts.rank,
        drifts.onset_step
    from firsts
    inner join pairs on firsts.pair_id = pairs.pair_id
    inner join dim_metric as metrics on firsts.metric = metrics.metric
    left join drifts
        on
            firsts.pair_id = drifts.pair_id
            and firsts.metric = drifts.metric
            and firsts.step_axis = drifts.step_axis
    where
        metrics.focus_rank is not null
        or drifts.rank <= $others::integer
        or (metrics.parity_class = 'exact' and metrics.scale <> 'constant')
        -- A log without any of those to look at first still has something to show.
        or (firsts.focus_metrics = 0 and metrics.stage <> 'time' and firsts.place <= 20)
),

deltas as (
    select
        chosen.*,
        points.step,
        points.baseline_value,
        points.candidate_value,
        points.delta,
        coalesce(points.candidate_kind not in ('finite', 'rewritten_suspect'), false) as is_broken,
        row_number() over along as place,
        lag(points.delta) over along as previous
    from chosen
    inner join mart_paired_delta as points
        on
            chosen.pair_id = points.pair_id
            and chosen.metric = points.metric
            and chosen.step_axis = points.step_axis
    where points.baseline_kind is not null and points.candidate_kind is not null
    window along as (
        partition by chosen.pair_id, chosen.metric, chosen.step_axis
        order by points.step
    )
),

blocks as (
    select
        *,
        'all steps' as block,
        2 as block_place
    from deltas
    union all by name
    select
        *,
        'first ' || $steps || ' steps' as block,
        1 as block_place
    from deltas
    where place <= $steps::integer
),

summed as (
    select
        pair_id,
        block_place,
        block,
        metric,
        step_axis,
        focus_rank,
        rank,
        onset_step,
        parity_class,
        stage,
        is_equal,
        count(delta) as n,
        max(step) as last_step,
        min(step) filter (where is_broken) as first_broken,
        avg(baseline_value) filter (where delta is not null) as baseline_mean,
        avg(candidate_value) filter (where delta is not null) as candidate_mean,
        avg(delta) as difference,
        stddev_samp(delta) as spread,
        least(greatest(coalesce(corr(delta, previous) filter (where isfinite(previous)), 0.0), 0.0), 0.95) as lag1
    from blocks
    group by all
),

-- Steps that follow each other are alike: their number counts less (n (1 - r) / (1 + r) for a lag-one correlation r).
widths as (
    select
        *,
        greatest(case when isnan(lag1) then n else n * (1.0 - lag1) / (1.0 + lag1) end, 2.0) as effective
    from summed
),

-- Of a phase that is slower all along and slower still from some step on, the change is told.
paces as (
    select *
    from mart_time_shift
    qualify row_number() over (
        partition by pair_id, metric_id, step_axis
        order by shift_kind = 'from_start'
    ) = 1
)

select
    pairs.migration,
    pairs.baseline_run_name as baseline,
    pairs.candidate_run_name as candidate,
    widths.block,
    widths.metric,
    widths.baseline_mean,
    widths.candidate_mean,
    widths.difference,
    widths.difference - (1.96 + 2.4 / (widths.effective - 1)) * widths.spread / sqrt(widths.effective) as low,
    widths.difference + (1.96 + 2.4 / (widths.effective - 1)) * widths.spread / sqrt(widths.effective) as high,
    widths.n,
    case
        when widths.first_broken is not null then 'not finite from step ' || widths.first_broken
        when widths.rank is not null and widths.onset_step <= widths.last_step
            then 'drift from step ' || widths.onset_step
        when widths.is_equal then 'equal'
        when widths.parity_class = 'exact' then 'must be equal and is not'
        when paces.onset_step <= widths.last_step or paces.shift_kind = 'from_start'
            then substr(paces.sentence, length(paces.metric) + 2)
        when widths.stage = 'time' then 'no lasting change of 25%'
        else 'no drift'
    end as verdict
from widths
inner join pairs on widths.pair_id = pairs.pair_id
left join paces
    on
        widths.pair_id = paces.pair_id
        and widths.metric = paces.metric
        and widths.step_axis = paces.step_axis
order by
    pairs.migration, baseline, widths.block_place, widths.focus_rank nulls last, widths.rank nulls last, widths.metric
