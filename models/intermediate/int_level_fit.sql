-- Two-segment fit of the level of each tested metric of a pair: where the level changes, if it does.
-- grain: pair_id, metric_id, step_axis
-- materialized: incremental(pair_id)
with deltas as (
    select
        pair_id,
        metric_id,
        step_axis,
        step,
        adjusted_delta,
        delta,
        scaled_delta,
        baseline_value,
        sigma,
        greatest(sigma, coalesce(local_sigma, 0.0)) as width
    from mart_paired_delta
    where is_comparable and sigma > 0
),

floors as (
    select * from int_pair_floor
),

pairs as (
    select
        pair_id,
        baseline_stack <> candidate_stack as is_across_stacks
    from dim_migration
),

metrics as (
    select
        metric_id,
        parity_class,
        scale,
        causal_tier = 9 as is_time
    from dim_metric
),

tested as (
    select
        deltas.*,
        metrics.is_time
    from deltas
    inner join metrics on deltas.metric_id = metrics.metric_id
    where metrics.parity_class <> 'exact' and metrics.scale not in ('exact', 'constant')
),

middles as (
    select
        pair_id,
        metric_id,
        step_axis,
        median(adjusted_delta) as middle
    from tested
    group by pair_id, metric_id, step_axis
),

-- Outliers are drawn in to six sigma around the median; sums of squares are of centred values, lest they cancel.
centred as (
    select
        tested.*,
        middles.middle,
        least(greatest(tested.adjusted_delta - middles.middle, -6.0 * tested.width), 6.0 * tested.width) as d,
        1.0 / (tested.sigma * tested.sigma) as w
    from tested
    inner join middles
        on
            tested.pair_id = middles.pair_id and tested.metric_id = middles.metric_id
            and tested.step_axis = middles.step_axis
),

totals as (
    select
        pair_id,
        metric_id,
        step_axis,
        count(*) as n,
        sum(w) as weight,
        sum(w * d) as total,
        sum(w * d * d) as squares,
        max(sigma) as largest_sigma
    from centred
    group by pair_id, metric_id, step_axis
),

-- One sort for everything that needs the order of the steps; a split lies before the row that it is reckoned at.
cumulated as (
    select
        *,
        row_number() over along as i,
        sum(w) over along as weight_so_far,
        sum(w * d) over along as sum_so_far,
        lag(d) over along as previous_d,
        lag(sigma) over along as previous_sigma
    from centred
    window along as (
        partition by pair_id, metric_id, step_axis
        order by step
        rows unbounded preceding
    )
),

running as (
    select
        cumulated.*,
        totals.n,
        totals.weight,
        totals.total,
        totals.squares,
        totals.largest_sigma,
        cumulated.i - 1 as k,
        cumulated.weight_so_far - cumulated.w as left_weight,
        cumulated.sum_so_far - cumulated.w * cumulated.d as left_sum
    from cumulated
    inner join totals
        on
            cumulated.pair_id = totals.pair_id and cumulated.metric_id = totals.metric_id
            and cumulated.step_axis = totals.step_axis
),

splits as (
    select
        pair_id,
        metric_id,
        step_axis,
        k,
        n,
        step as next_step,
        left_sum / left_weight as left_level,
        (total - left_sum) / (weight - left_weight) as right_level,
        largest_sigma,
        weighted_sse(left_weight, left_sum, weight, total, squares) as sse,
        squares - total * total / weight as sse_flat
    from running
    where k between shortest_segment(n) and n - shortest_segment(n)
),

best as (
    select
        pair_id,
        metric_id,
        step_axis,
        any_value(n) as n,
        any_value(largest_sigma) as sigma,
        arg_min(k, sse) as k,
        arg_min(next_step, sse) as onset_step,
        min(sse) as sse,
        any_value(sse_flat) as sse_flat,
        arg_min(left_level, sse) as left_level,
        arg_min(right_level, sse) as right_level
    from splits
    group by pair_id, metric_id, step_axis
),

-- Autocorrelation of what the fit leaves over, and what the values say after the split.
leftover as (
    select
        running.pair_id,
        running.metric_id,
        running.step_axis,
        running.i,
        best.k as split,
        running.is_time,
        running.delta,
        running.baseline_value,
        running.scaled_delta,
        running.adjusted_delta - running.middle - best.left_level as above_left,
        (running.d - case when running.i <= best.k then best.left_level else best.right_level end)
        / running.sigma as residual,
        (running.previous_d - case when running.i - 1 <= best.k then best.left_level else best.right_level end)
        / running.previous_sigma as previous
    from running
    inner join best
        on
            running.pair_id = best.pair_id and running.metric_id = best.metric_id
            and running.step_axis = best.step_axis
),

described as (
    select
        pair_id,
        metric_id,
        step_axis,
        sum(residual * previous) / nullif(sum(residual * residual), 0) as lag1,
        avg(delta) filter (where i > split) - avg(delta) filter (where i <= split) as raw_effect,
        avg(scaled_delta) filter (where i <= split) as stack_level,
        avg(scaled_delta) filter (where i > split) as level_after,
        avg(abs(baseline_value)) as baseline_level,
        median(scaled_delta) filter (where is_time and i > split)
        - median(scaled_delta) filter (where is_time and i <= split) as median_shift,
        median(scaled_delta) filter (where is_time and i <= split) as median_before,
        median(scaled_delta) filter (where is_time) as median_level,
        avg(above_left) filter (where i > split) as mean_after,
        median(above_left) filter (where i > split and i <= split + 8) as median_next
    from leftover
    group by pair_id, metric_id, step_axis
),

corrected as (
    select
        best.*,
        described.raw_effect,
        described.mean_after,
        described.median_shift,
        described.median_before,
        described.median_level,
        described.median_next,
        described.stack_level,
        described.level_after,
        described.baseline_level,
        floors.sigma as floor_sigma,
        coalesce(nullif(floors.equal_sigma, 0.0), best.sigma) as gate_sigma,
        coalesce(floors.effective_size, 0) as effective_size,
        coalesce(floors.baseline_runs, 0) as baseline_runs,
        coalesce(floors.candidate_runs, 0) as candidate_runs,
        pairs.is_across_stacks,
        least(greatest(described.lag1 + (1.0 + 4.0 * described.lag1) / best.n, 0.0), 0.95) as own_autocorrelation,
        floors.autocorrelation as floor_autocorrelation,
        floors.inflation as floor_inflation
    from best
    inner join described
        on
            best.pair_id = described.pair_id and best.metric_id = described.metric_id
            and best.step_axis = described.step_axis
    inner join pairs on best.pair_id = pairs.pair_id
    left join floors
        on
            best.pair_id = floors.pair_id and best.metric_id = floors.metric_id
            and best.step_axis = floors.step_axis
),

-- A pair that is clearly more autocorrelated than equal runs were is deflated by that much more.
deflated as (
    select
        *,
        case
            when effective_size > 0
                then
                    case
                        when is_across_stacks and candidate_runs = 0 then one_sided_inflation(floor_inflation)
                        else floor_inflation
                    end
                    * case
                        when own_autocorrelation > floor_autocorrelation + 2.0 / sqrt(n)
                            then ar_inflation(own_autocorrelation) / ar_inflation(floor_autocorrelation)
                        else 1.0
                    end
            else prior_inflation() * ar_inflation(own_autocorrelation)
        end as inflation
    from corrected
),

tested_f as (
    select
        *,
        (sse_flat - sse) / (sse / (n - 2)) as f
    from deflated
),

-- Likelihood of each split relative to the best one, as far as it counts.
compared as (
    select
        splits.pair_id,
        splits.metric_id,
        splits.step_axis,
        splits.next_step,
        (splits.sse - tested_f.sse) / (tested_f.sse / (tested_f.n - 2) * tested_f.inflation) as lr
    from splits
    inner join tested_f
        on
            splits.pair_id = tested_f.pair_id and splits.metric_id = tested_f.metric_id
            and splits.step_axis = tested_f.step_axis
),

interval as (
    select
        pair_id,
        metric_id,
        step_axis,
        min(next_step) filter (where lr <= 7.35) as onset_step_low,
        max(next_step) filter (where lr <= 7.35) as onset_step_high,
        list(struct_pack(step := next_step, lr := lr) order by next_step) as profile
    from compared
    where lr <= 30.0
    group by pair_id, metric_id, step_axis
)

select
    tested_f.pair_id,  -- the pair
    tested_f.metric_id,  -- the metric
    tested_f.step_axis,  -- which counter the step counts
    tested_f.n,  -- steps that take part
    tested_f.k,  -- steps before the change
    tested_f.onset_step,  -- first step after the change
    interval.onset_step_low,  -- lower end of the interval of the onset
    interval.onset_step_high,  -- upper end of the interval of the onset
    tested_f.f,  -- two-segment statistic
    tested_f.inflation,  -- what the statistic is divided by before it is judged
    tested_f.f / tested_f.inflation as statistic,  -- the statistic that is judged
    largest_f_p(tested_f.f / tested_f.inflation, tested_f.n) as p_value,  -- its upper tail under no change
    tested_f.right_level - tested_f.left_level as effect,  -- change of level on the comparison scale
    tested_f.raw_effect,  -- change of the mean difference in the metric's own unit
    tested_f.stack_level,  -- mean difference on the comparison scale before the change
    tested_f.level_after,  -- mean difference on the comparison scale after the change
    tested_f.baseline_level,  -- mean size of the baseline's value
    interval.profile,  -- likelihood ratio against the best split, of every onset step that counts
    tested_f.mean_after,  -- mean after the change, less the level before
    tested_f.median_shift,  -- for time: median difference after the change less that before
    tested_f.median_before,  -- for time: median difference before the change
    tested_f.median_level,  -- for time: median difference over all steps
    tested_f.median_next,  -- median of the next eight steps, less the level before
    tested_f.sigma,  -- noise of one step
    tested_f.floor_sigma,  -- noise of equal runs, from replicates; null without them
    tested_f.gate_sigma,  -- noise in which the size of an effect is measured: of equal runs, or of one step
    tested_f.sse,  -- weighted squares left over by the fit
    tested_f.own_autocorrelation,  -- lag-one autocorrelation of what is left over
    tested_f.floor_autocorrelation,  -- the same, of the difference of equal runs
    tested_f.effective_size,  -- independent differences of equal runs behind the floor
    tested_f.baseline_runs,  -- replicates of the baseline's stack
    tested_f.candidate_runs,  -- replicates of the candidate's stack
    tested_f.is_across_stacks  -- the pair is of two stacks
from tested_f
inner join interval
    on
        tested_f.pair_id = interval.pair_id and tested_f.metric_id = interval.metric_id
        and tested_f.step_axis = interval.step_axis
