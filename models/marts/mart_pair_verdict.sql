-- The verdict on a pair, with grade and reason; one row for every pair.
-- grain: pair_id
-- materialized: incremental(pair_id)
with pairs as (
    select
        pair_id,
        migration,
        pair_kind,
        baseline_run_name,
        candidate_run_name,
        baseline_stack <> candidate_stack as is_across_stacks
    from dim_migration
),

metrics as (
    select
        metric_id,
        metric,
        stage,
        causal_tier,
        parity_class,
        scale
    from dim_metric
),

differences as (
    select * from int_first_difference
),

starts as (
    select * from int_start_offset
),

first_drift as (
    select * from mart_first_drift
),

onsets as (
    select * from mart_divergence_onset
),

fits as (
    select * from int_level_fit
),

floors as (
    select * from int_pair_floor
),

-- The largest change of time first; an offset from the first step comes after changes.
ordered_times as (
    select
        *,
        row_number() over (
            partition by pair_id
            order by shift_kind asc, abs(ln(ratio)) desc, metric asc, step_axis asc
        ) as place
    from mart_time_shift
),

times as (
    select
        pair_id,
        string_agg(sentence, '; ' order by place) as time_verdict
    from ordered_times
    where place <= 3
    group by pair_id
),

timed as (
    select
        fits.pair_id,
        count(*) as time_metrics
    from fits
    inner join metrics on fits.metric_id = metrics.metric_id
    where metrics.causal_tier = 9
    group by fits.pair_id
),

nonfinite as (
    select
        differences.pair_id,
        min(differences.candidate_nonfinite) filter (
            where metrics.causal_tier = 1 or metrics.stage = 'reward'
        ) as first_step,
        arg_min(metrics.metric, (differences.candidate_nonfinite, metrics.metric)) filter (
            where metrics.causal_tier = 1 or metrics.stage = 'reward'
        ) as first_metric,
        bool_or(metrics.causal_tier = 1 or metrics.stage = 'reward') as is_of_training,
        list(
            struct_pack(metric := metrics.metric, step := differences.candidate_nonfinite)
            order by differences.candidate_nonfinite, metrics.metric
        ) as nonfinite_metrics
    from differences
    inner join metrics on differences.metric_id = metrics.metric_id
    where differences.candidate_nonfinite is not null
    group by differences.pair_id
),

parity as (
    select
        differences.pair_id,
        min(differences.first_difference) as first_step,
        arg_min(metrics.metric, (differences.first_difference, metrics.metric)) as first_metric,
        count(*) as exact_metrics,
        count(*) filter (where differences.first_difference is not null) as broken_metrics
    from differences
    inner join metrics on differences.metric_id = metrics.metric_id
    where metrics.parity_class = 'exact' and differences.n > 0
    group by differences.pair_id
),

mismatched as (
    select
        pair_id,
        arg_min(
            struct_pack(metric := metric, step := first_step, delta := first_delta), (causal_tier, metric, step_axis)
        ) as first_start
    from starts
    where is_material
    group by pair_id
),

drifted as (
    select
        pair_id,
        metric,
        stage,
        onset_step,
        onset_step_low,
        onset_step_high
    from first_drift
    where rank = 1
),

apart as (
    select
        pair_id,
        count(*) filter (where onset_kind = 'decouple' and not is_censored) as decoupled_metrics,
        min(onset_step) filter (where onset_kind = 'decouple') as decoupled_at,
        min(onset_step) filter (where onset_kind = 'first_diff' and causal_tier < 8) as first_difference,
        arg_min(metric, (onset_step, metric)) filter (where onset_kind = 'first_diff' and causal_tier < 8)
            as first_different_metric
    from onsets
    where causal_tier < 8
    group by pair_id
),

-- What of the training the two runs can be compared in. A metric that is equal to the last digit has no noise, so that
-- there is nothing to test in it.
compared as (
    select
        differences.*,
        metrics.parity_class <> 'exact' and metrics.scale not in ('exact', 'constant') as is_testable,
        fits.metric_id is not null as is_tested,
        floors.baseline_runs,
        floors.candidate_runs,
        floors.effective_size
    from differences
    inner join metrics on differences.metric_id = metrics.metric_id
    left join fits
        on
            differences.pair_id = fits.pair_id and differences.metric_id = fits.metric_id
            and differences.step_axis = fits.step_axis
    left join floors
        on
            differences.pair_id = floors.pair_id and differences.metric_id = floors.metric_id
            and differences.step_axis = floors.step_axis
    where metrics.causal_tier < 9 and differences.n > 0
),

lengths as (
    select
        pair_id,
        max(comparable_steps) as step_count,
        max(last_common_step) as last_common_step,
        bool_or(is_tested) as is_tested,
        bool_or(is_testable) and bool_and(first_difference is null) as is_equal_throughout,
        max(baseline_runs) as baseline_runs,
        max(candidate_runs) as candidate_runs,
        max(effective_size) filter (where is_testable) as effective_size
    from compared
    group by pair_id
),

facts as (
    select
        pairs.*,
        nonfinite.nonfinite_metrics,
        nonfinite.first_metric as nonfinite_metric,
        nonfinite.first_step as nonfinite_step,
        coalesce(nonfinite.is_of_training, false) as is_nonfinite,
        mismatched.first_start.metric as mismatch_metric,
        mismatched.first_start.step as mismatch_step,
        mismatched.first_start.delta as mismatch_delta,
        coalesce(parity.broken_metrics, 0) as broken_metrics,
        parity.first_metric as parity_metric,
        parity.first_step as parity_step,
        drifted.metric as drift_metric,
        drifted.stage as drift_stage,
        drifted.onset_step as drift_step,
        drifted.onset_step_low as drift_low,
        drifted.onset_step_high as drift_high,
        coalesce(apart.decoupled_metrics, 0) as decoupled_metrics,
        apart.decoupled_at,
        apart.first_difference,
        apart.first_different_metric,
        coalesce(
            times.time_verdict,
            case when timed.time_metrics > 0 then 'no stage became 25% slower or faster' else 'no stage was timed' end
        ) as time_verdict,
        coalesce(lengths.step_count, 0) as step_count,
        lengths.last_common_step,
        coalesce(lengths.is_tested, false) as is_tested,
        coalesce(lengths.is_equal_throughout, false) as is_equal_throughout,
        coalesce(lengths.baseline_runs, 0) as baseline_runs,
        coalesce(lengths.candidate_runs, 0) as candidate_runs,
        coalesce(lengths.effective_size, 0) as effective_size
    from pairs
    left join nonfinite on pairs.pair_id = nonfinite.pair_id
    left join mismatched on pairs.pair_id = mismatched.pair_id
    left join parity on pairs.pair_id = parity.pair_id
    left join drifted on pairs.pair_id = drifted.pair_id
    left join apart on pairs.pair_id = apart.pair_id
    left join times on pairs.pair_id = times.pair_id
    left join timed on pairs.pair_id = timed.pair_id
    left join lengths on pairs.pair_id = lengths.pair_id
),

judged as (
    select
        *,
        case
            when is_nonfinite then 'nonfinite'
            when mismatch_metric is not null then 'initial_mismatch'
            when broken_metrics > 0 then 'parity_broken'
            when drift_metric is not null then 'drift'
            when step_count < 20 then 'insufficient'
            when not is_tested and not is_equal_throughout then 'insufficient'
            when decoupled_metrics > 0 then 'decoupled_only'
            else 'within_floor'
        end as verdict,
        case
            when
                effective_size >= 2 and baseline_runs >= 1 and (candidate_runs >= 1 or not is_across_stacks)
                then 'A'
            when effective_size >= 1 then 'B'
            when step_count >= 20 then 'C'
            else 'D'
        end as grade
    from facts
)

select
    pair_id,  -- the pair
    migration,  -- its migration
    pair_kind,  -- migration or replicate
    verdict,  -- nonfinite, initial_mismatch, parity_broken, drift, decoupled_only, within_floor or insufficient
    grade,  -- A (replicates of all stacks), B (of any), C (none that tell the noise), D (hardly any steps either)
    case verdict
        when 'nonfinite'
            then format('{} is not finite from step {}.', nonfinite_metric, nonfinite_step)
        when 'initial_mismatch'
            then format(
                '{} is {} apart at step {}, the first that both logged: the runs did not start equal.',
                mismatch_metric, printf('%.3g', mismatch_delta), mismatch_step
            )
        when 'parity_broken'
            then format(
                '{} must be equal and is not from step {}: the runs saw different data.', parity_metric, parity_step
            )
        when 'drift'
            then format(
                '{} is off from {}. {}',
                drift_metric, step_in_words(drift_step, drift_low, drift_high), stage_advice(drift_stage)
            )
        when 'insufficient'
            then case
                when step_count = 0 then 'There is no step at which a metric of training can be compared.'
                when step_count < 20
                    then format(
                        'Both runs can be compared at {} only; 20 are needed.', counted(step_count, 'step')
                    )
                else format(
                    'No metric of training could be tested, though both runs logged {}: '
                    || 'each is constant, must be equal, or differs too seldom to tell its noise.',
                    counted(step_count, 'common step')
                )
            end
        when 'decoupled_only'
            then case
                when effective_size >= 1
                    then format(
                        'The curves part at step {} and are apart by no more than equal runs would be: '
                        || 'no metric has a lasting bias up to step {}.',
                        decoupled_at, last_common_step
                    )
                else format(
                    'The curves part at step {}, and no metric has a lasting bias up to step {}: '
                    || 'measured by the noise of the pair itself, for want of equal runs.',
                    decoupled_at, last_common_step
                )
            end
        else case
            when is_equal_throughout
                then format('Every value is equal to the last logged digit up to step {}.', last_common_step)
            when effective_size >= 1
                then format('No difference beyond that of equal runs up to step {}.', last_common_step)
            else format(
                'No lasting difference up to step {}: '
                || 'measured by the noise of the pair itself, for want of equal runs.',
                last_common_step
            )
        end
    end as reason,  -- the verdict in a sentence
    drift_metric as first_metric,  -- metric that drifted first; null where none did
    drift_stage as first_stage,  -- stage that it points to
    drift_step as first_onset_step,  -- step from which it is off
    time_verdict,  -- which stage became slower or faster, by how much, from which step
    nonfinite_step,  -- first step at which loss, gradient or reward is not finite
    nonfinite_metrics,  -- metrics of the candidate that are not finite, each with its first step
    parity_step as parity_broken_at,  -- first step at which a metric that must be equal is not
    first_difference as first_different_step,  -- first step at which any metric of training differs
    first_different_metric,  -- that metric
    decoupled_at,  -- step at which the first metric reached the noise of equal runs
    step_count,  -- steps at which both runs logged finite and sound values of training
    last_common_step,  -- last of them: without onset the pair is censored there
    baseline_runs as baseline_replicates,  -- replicates of the baseline's stack beside the judged runs
    candidate_runs as candidate_replicates,  -- replicates of the candidate's stack beside them; 0 where both share one
    effective_size  -- independent differences of equal runs behind the floor: the grade is made from them
from judged
