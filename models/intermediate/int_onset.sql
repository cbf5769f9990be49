-- Onset and shape of each drift: a step, a ramp (a hinge fits better), a sawtooth (the excess comes and goes with a
-- fixed period) or a spike (the level comes back).
-- grain: pair_id, metric_id, step_axis
-- materialized: incremental(pair_id)
with drifted as (
    select
        pair_id,
        metric_id,
        step_axis
    from int_drift_test
    where is_drift
),

fits as (
    select * from int_level_fit
),

deltas as (
    select
        pair_id,
        metric_id,
        step_axis,
        step,
        adjusted_delta,
        sigma,
        greatest(sigma, coalesce(local_sigma, 0.0)) as width
    from mart_paired_delta
    where is_comparable and sigma > 0
),

-- The same winsorised values and weights as in the fit of the step.
series as (
    select
        deltas.pair_id,
        deltas.metric_id,
        deltas.step_axis,
        deltas.step,
        deltas.adjusted_delta,
        deltas.width,
        1.0 / (deltas.sigma * deltas.sigma) as w,
        fits.k as split,
        fits.interval_inflation,
        fits.effect,
        fits.onset_step as step_onset,
        deltas.step - min(deltas.step) over (
            partition by deltas.pair_id, deltas.metric_id, deltas.step_axis
        ) as t,
        median(deltas.adjusted_delta) over (
            partition by deltas.pair_id, deltas.metric_id, deltas.step_axis
        ) as middle
    from drifted
    inner join fits
        on
            drifted.pair_id = fits.pair_id and drifted.metric_id = fits.metric_id
            and drifted.step_axis = fits.step_axis
    inner join deltas
        on
            drifted.pair_id = deltas.pair_id and drifted.metric_id = deltas.metric_id
            and drifted.step_axis = deltas.step_axis
),

-- The step is dated on the values of the fit, with outliers drawn in hard; that would bend a ramp into a step, so
-- shapes are told on values that keep more of their size.
drawn as (
    select
        *,
        'hard' as drawing,
        drawn_in(adjusted_delta - middle, width) as d
    from series
    union all by name
    select
        *,
        'gently' as drawing,
        drawn_in_gently(adjusted_delta - middle, width) as d
    from series
),

running as (
    select
        *,
        row_number() over along as k,
        count(*) over whole as n,
        lead(step) over (partition by pair_id, metric_id, step_axis, drawing order by step) as next_step,
        sum(w) over whole as weight,
        sum(w * d) over whole as total,
        sum(w * d * d) over whole as squares,
        sum(w) over whole - sum(w) over along as right_w,
        sum(w * t) over whole - sum(w * t) over along as right_t,
        sum(w * t * t) over whole - sum(w * t * t) over along as right_tt,
        sum(w * d) over whole - sum(w * d) over along as right_d,
        sum(w * t * d) over whole - sum(w * t * d) over along as right_td
    from drawn
    window
        along as (
            partition by pair_id, metric_id, step_axis, drawing
            order by step
            rows unbounded preceding
        ),
        whole as (partition by pair_id, metric_id, step_axis, drawing)
),

-- Sums of x = max(0, time since the k-th step), the regressor of a hinge.
hinged as (
    select
        *,
        right_t - t * right_w as sx,
        right_tt - 2.0 * t * right_t + t * t * right_w as sxx,
        right_td - t * right_d as sxd
    from running
    where k between shortest_segment(n) and n - shortest_segment(n)
),

-- Squares left over by a step and by a hinge, at each split.
split_fits as (
    select
        pair_id,
        metric_id,
        step_axis,
        next_step,
        n,
        interval_inflation,
        case when drawing = 'hard' then 'step' else 'gentle step' end as shape,
        weighted_sse(weight - right_w, total - right_d, weight, total, squares) as sse
    from hinged
    union all by name
    select
        pair_id,
        metric_id,
        step_axis,
        next_step,
        n,
        interval_inflation,
        'ramp' as shape,
        squares - total * total / weight
        - pow(sxd - sx * total / weight, 2) / greatest(sxx - sx * sx / weight, 1e-12) as sse
    from hinged
    where drawing = 'gently'
),

compared as (
    select
        *,
        (sse - min(sse) over whole) / (residual_variance(min(sse) over whole, n) * interval_inflation) as lr
    from split_fits
    window whole as (partition by pair_id, metric_id, step_axis, shape)
),

candidates as (
    select
        pair_id,
        metric_id,
        step_axis,
        shape,
        any_value(n) as n,
        min(sse) as sse,
        arg_min(next_step, sse) as onset_step,
        min(next_step) filter (where lr <= interval_limit()) as onset_step_low,
        max(next_step) filter (where lr <= interval_limit()) as onset_step_high,
        list(struct_pack(step := next_step, lr := lr) order by next_step) filter (where lr <= 30.0) as profile
    from compared
    group by pair_id, metric_id, step_axis, shape
),

steps as (
    select * from candidates
    where shape = 'gentle step'
),

ramps as (
    select * from candidates
    where shape = 'ramp'
),

-- What the values do after the step, less their own mean: does it come back with a period?
after as (
    select
        pair_id,
        metric_id,
        step_axis,
        step,
        d - avg(d) over (partition by pair_id, metric_id, step_axis) as r,
        ntile(3) over (partition by pair_id, metric_id, step_axis order by step) as third,
        adjusted_delta - middle as excess,
        effect
    from drawn
    where drawing = 'gently' and step >= step_onset
),

lagged as (
    select
        *,
        lag(r, 1) over along as r1,
        lag(r, 2) over along as r2,
        lag(r, 3) over along as r3,
        lag(r, 4) over along as r4,
        lag(r, 5) over along as r5,
        lag(r, 6) over along as r6,
        lag(r, 8) over along as r8
    from after
    window along as (
        partition by pair_id, metric_id, step_axis
        order by step
    )
),

repeating as (
    select
        pair_id,
        metric_id,
        step_axis,
        count(*) as n_after,
        sum(r * r1) / nullif(sum(r * r), 0.0) as lag1,
        greatest(sum(r * r2), sum(r * r3), sum(r * r4), sum(r * r5), sum(r * r6), sum(r * r8))
        / nullif(sum(r * r), 0.0) as best_lag
    from lagged
    group by pair_id, metric_id, step_axis
),

before_levels as (
    select
        pair_id,
        metric_id,
        step_axis,
        median(adjusted_delta - middle) as before_level
    from series
    where step < step_onset
    group by pair_id, metric_id, step_axis
),

last_levels as (
    select
        pair_id,
        metric_id,
        step_axis,
        median(excess) as last_level,
        any_value(effect) as effect
    from after
    where third = 3
    group by pair_id, metric_id, step_axis
),

shaped as (
    select
        steps.pair_id,
        steps.metric_id,
        steps.step_axis,
        case
            when repeating.n_after >= 16 and repeating.best_lag > 0.5 and repeating.best_lag > repeating.lag1 + 0.3
                then 'sawtooth'
            when (last_levels.last_level - before_levels.before_level) / last_levels.effect < 0.3 then 'spike'
            when steps.n * ln(steps.sse / greatest(ramps.sse, 1e-300)) > 6.0 then 'ramp'
            else 'step'
        end as shape
    from steps
    inner join ramps
        on
            steps.pair_id = ramps.pair_id and steps.metric_id = ramps.metric_id
            and steps.step_axis = ramps.step_axis
    left join repeating
        on
            steps.pair_id = repeating.pair_id and steps.metric_id = repeating.metric_id
            and steps.step_axis = repeating.step_axis
    left join before_levels
        on
            steps.pair_id = before_levels.pair_id and steps.metric_id = before_levels.metric_id
            and steps.step_axis = before_levels.step_axis
    left join last_levels
        on
            steps.pair_id = last_levels.pair_id and steps.metric_id = last_levels.metric_id
            and steps.step_axis = last_levels.step_axis
)

select
    fits.pair_id,  -- the pair
    fits.metric_id,  -- the metric
    fits.step_axis,  -- which counter the step counts
    shaped.shape,  -- step, ramp, sawtooth or spike
    candidates.onset_step,  -- first step after the change
    candidates.onset_step_low,  -- lower end of its interval
    candidates.onset_step_high,  -- upper end of its interval
    candidates.profile,  -- likelihood ratio against the best split, of every onset step that counts
    fits.statistic,  -- the statistic of the step
    fits.effect  -- change of level on the comparison scale
from fits
inner join shaped
    on
        fits.pair_id = shaped.pair_id and fits.metric_id = shaped.metric_id
        and fits.step_axis = shaped.step_axis
inner join candidates
    on
        fits.pair_id = candidates.pair_id and fits.metric_id = candidates.metric_id
        and fits.step_axis = candidates.step_axis
        and candidates.shape = case when shaped.shape = 'ramp' then 'ramp' else 'step' end
