-- Scales on which runs are compared. The catalogue names the scale of each metric.
create or replace macro comparison_value(x, increase, scale, width) as
case scale
    when 'log' then ln(greatest(x, coalesce(width, 1e-12)))
    when 'logit'
        then ln(
            (least(greatest(x, 0.0), 1.0) + coalesce(width, 1e-3))
            / (1.0 - least(greatest(x, 0.0), 1.0) + coalesce(width, 1e-3))
        )
    when 'asinh' then asinh(x / coalesce(width, 1e-3))
    when 'cumulative' then sign(increase) * ln(1.0 + abs(increase))
    else x
end;
