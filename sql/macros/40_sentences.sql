-- What a first drift of a stage points to, in words.
create or replace macro stage_advice(stage) as
case stage
    when 'data' then 'The data differ: look at the order of the prompts and at the tokenizer.'
    when 'rollout_or_weight_sync'
        then 'Rollout and training disagree: look at inference kernels, numerics of the rollout, or weight sync.'
    when 'training' then 'The training step differs: look at loss, gradient reduction, clipping, optimizer.'
    when 'reward' then 'The rewards differ: look at the judge and at the parsing of answers.'
    when 'evaluation' then 'The evaluation differs: look at its sampling and its data.'
    when 'queue' then 'The queue of samples differs: look at scheduling and staleness of samples.'
    else 'It is a metric of time.'
end;

-- A ratio of times in words.
create or replace macro speed_in_words(ratio) as
case
    when ratio >= 1.0 then printf('%.2f', ratio) || ' times slower'
    else printf('%.2f', 1.0 / ratio) || ' times faster'
end;

-- A number of things; the noun takes an s unless there is one of it.
create or replace macro counted(number, noun) as number || ' ' || noun || case when number = 1 then '' else 's' end;

-- A step with its interval, where that is wider than the step.
create or replace macro step_in_words(step, low, high) as
'step ' || step || case when low = high then '' else ' (between ' || low || ' and ' || high || ')' end;
