-- The kind of a value is the one that the value has.
-- severity: error
-- blocking: true
select
    run_id,
    metric_id,
    step_axis,
    step,
    value,
    value_kind
from fct_metric
where
    case value_kind
        when 'finite' then value is null or not isfinite(value)
        when 'nan' then value is null or not isnan(value)
        when 'pos_inf' then value is null or value <> 'inf'::double
        when 'neg_inf' then value is null or value <> '-inf'::double
        when 'nonfinite_unknown' then value is not null
        when 'rewritten_suspect' then value is not null and not isfinite(value)
        else true
    end
