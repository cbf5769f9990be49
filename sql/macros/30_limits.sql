-- Limits that the tests and verdicts use. What they were measured against is in docs/statistics.md.
create or replace macro drift_q_limit() as 0.05;
create or replace macro decouple_p_limit() as 0.001;

-- Without replicates a statistic is divided by this much, on top of what its own autocorrelation asks for.
create or replace macro prior_inflation() as 3.0;

-- With replicates it is divided by their mean statistic, or by what their autocorrelation asks for, whichever is more.
-- The largest statistic has a heavier tail than its mean tells, and the fewer the replicates the less is known of it.
create or replace macro inflation_of_replicates(mean_f, autocorrelation, degrees) as greatest(
    mean_f * (1.1 + 0.6 / degrees), (1.0 + autocorrelation) / (1.0 - autocorrelation), 1.0
);

-- Effect, in sigma of the difference of two equal runs, below which a change is taken for wandering.
create or replace macro noise_gate() as 1.3;

-- Variance of a step for the weights of a fit: never below a share of the plateau. Equal runs that are still coupled
-- are apart by rounding alone; a weight that believed it would call any offset a change.
create or replace macro noise_at_step(variance, plateau) as greatest(variance, 0.25 * plateau);

-- A change of time that counts: the medians before and after are 25% apart, and their difference is still 15% when
-- two of its standard errors are taken off. Slow spells of a shared machine reach some 20%.
create or replace macro time_limit() as ln(1.25);
create or replace macro is_time_shift(median_shift, sigma, inflation, k, n) as
abs(median_shift) >= time_limit()
and abs(median_shift) - 2.0 * 1.25 * sigma * sqrt(inflation * (1.0 / k + 1.0 / (n - k))) >= ln(1.15);

-- Permutations behind the chance of a difference between component versions.
create or replace macro permutation_count() as 1999;
