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
        fits.inflation,
        fits.sse as sse_step,
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

centred as (
    select
        *,
        least(greatest(adjusted_delta - middle, -6.0 * width), 6.0 * width) as d
    from series
),

running as (
    select
        *,
        row_number() over along as k,
        count(*) over whole as n,
        lead(step) over (partition by pair_id, metric_id, step_axis order by step) as next_step,
        sum(w) over whole as weight,
        sum(w * d) over whole as total,
        sum(w * d * d) over whole as squares,
        sum(w) over whole - sum(w) over along as right_w,
        sum(w * t) over whole - sum(w * t) over along as right_t,
        sum(w * t * t) over whole - sum(w * t * t) over along as right_tt,
        sum(w * d) over whole - sum(w * d) over along as right_d,
        sum(w * t * d) over whole - sum(w * t * d) over along as right_td
    from centred
    window
        along as (
            partition by pair_id, metric_id, step_axis
            order by step
            rows unbounded preceding
        ),
        whole as (partition by pair_id, metric_id, step_axis)
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

hinges as (
    select
        pair_id,
        metric_id,
        step_axis,
        next_step,
        n,
        inflation,
        sse_step,
        squares - total * total / weight
        - pow(sxd - sx * total / weight, 2) / greatest(sxx - sx * sx / weight, 1e-12) as sse
    from hinged
),

best_hinge as (
    select
        pair_id,
        metric_id,
        step_axis,
        min(sse) as sse_hinge,
        arg_min(next_step, sse) as hinge_onset,
        any_value(sse_step) as sse_step,
        any_value(n) as n,
        any_value(inflation) as inflation
    from hinges
    group by pair_id, metric_id, step_axis
),

hinge_profiles as (
    select
        hinges.pair_id,
        hinges.metric_id,
        hinges.step_axis,
        hinges.next_step,
        (hinges.sse - best_hinge.sse_hinge)
        / (best_hinge.sse_hinge / (best_hinge.n - 2) * best_hinge.inflation) as lr
    from hinges
    inner join best_hinge
        on
            hinges.pair_id = best_hinge.pair_id and hinges.metric_id = best_hinge.metric_id
            and hinges.step_axis = best_hinge.step_axis
),

hinge_intervals as (
    select
        pair_id,
        metric_id,
        step_axis,
        min(next_step) filter (where lr <= 7.35) as hinge_low,
        max(next_step) filter (where lr <= 7.35) as hinge_high,
        list(struct_pack(step := next_step, lr := lr) order by next_step) as hinge_profile
    from hinge_profiles
    where lr <= 30.0
    group by pair_id, metric_id, step_axis
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
    from centred
    where step >= step_onset
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
    from centred
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
        best_hinge.pair_id,
        best_hinge.metric_id,
        best_hinge.step_axis,
        best_hinge.hinge_onset,
        hinge_intervals.hinge_low,
        hinge_intervals.hinge_high,
        hinge_intervals.hinge_profile,
        case
            when repeating.n_after >= 16 and repeating.best_lag > 0.5 and repeating.best_lag > repeating.lag1 + 0.3
                then 'sawtooth'
            when (last_levels.last_level - before_levels.before_level) / last_levels.effect < 0.3 then 'spike'
            when best_hinge.n * ln(best_hinge.sse_step / greatest(best_hinge.sse_hinge, 1e-300)) > 6.0 then 'ramp'
            else 'step'
        end as shape
    from best_hinge
    inner join hinge_intervals
        on
            best_hinge.pair_id = hinge_intervals.pair_id and best_hinge.metric_id = hinge_intervals.metric_id
            and best_hinge.step_axis = hinge_intervals.step_axis
    left join repeating
        on
            best_hinge.pair_id = repeating.pair_id and best_hinge.metric_id = repeating.metric_id
            and best_hinge.step_axis = repeating.step_axis
    left join before_levels
        on
            best_hinge.pair_id = before_levels.pair_id and best_hinge.metric_id = before_levels.metric_id
            and best_hinge.step_axis = before_levels.step_axis
    left join last_levels
        on
            best_hinge.pair_id = last_levels.pair_id and best_hinge.metric_id = last_levels.metric_id
            and best_hinge.step_axis = last_levels.step_axis
)

select
    fits.pair_id,  -- the pair
    fits.metric_id,  -- the metric
    fits.step_axis,  -- which counter the step counts
    coalesce(shaped.shape, 'step') as shape,  -- step, ramp, sawtooth or spike
    case when shaped.shape = 'ramp' then shaped.hinge_onset else fits.onset_step end as onset_step,  -- the onset
    case when shaped.shape = 'ramp' then shaped.hinge_low else fits.onset_step_low end as onset_step_low,  -- lower end
    case when shaped.shape = 'ramp' then shaped.hinge_high else fits.onset_step_high end as onset_step_high,  -- upper
    case when shaped.shape = 'ramp' then shaped.hinge_profile else fits.profile end as profile,  -- likelihood ratios
    fits.statistic,  -- the statistic of the step
    fits.effect  -- change of level on the comparison scale
from fits
inner join drifted
    on
        fits.pair_id = drifted.pair_id and fits.metric_id = drifted.metric_id
        and fits.step_axis = drifted.step_axis
left join shaped
    on
        fits.pair_id = shaped.pair_id and fits.metric_id = shaped.metric_id
        and fits.step_axis = shaped.step_axis
