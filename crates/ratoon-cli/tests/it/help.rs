//! Help texts and completions.

use crate::support::Place;

#[test]
fn help_texts() {
    let place = Place::new();
    insta::assert_snapshot!(place.shown("--help"), @"
    exit 0
    --- stdout
    Shrink what an AI agent has to carry: cut old tool results back to an excerpt from which the
    original grows again

    Usage: ratoon <COMMAND>

    Commands:
      compact      Propose which old tool results can be cut back to an excerpt
      recover      Print the original of a cut result, exactly as it was
      completions  Print the completion script of a shell
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Examples:
      ratoon compact run.json                         what would be cut, and why
      ratoon compact run.json --messages small.json   write the smaller message list
      ratoon recover 'run.json#call_7'                get an original back
    --- stderr
    ");
    insta::assert_snapshot!(place.shown("compact -h"), @"
    exit 0
    --- stdout
    Propose which old tool results can be cut back to an excerpt

    Usage: ratoon compact [OPTIONS] <FILE>

    Arguments:
      <FILE>  A request object, a list of messages, or a recorded run; `-` reads standard input

    Options:
      -h, --help  Print help (see more with '--help')

    Request (what is given here wins over FILE):
          --format <F>            The shape of the messages [default: auto] [possible values: auto,
                                  agentscope]
          --goal <TEXT>           What the agent is after [default: the last thing a person wrote]
          --next-action <TEXT>    What the agent does next
          --tools <A,B|all>       The tools whose results may be cut, or `all` [default: those of the
                                  request; all for bare messages]
          --option <KEY=VALUE>    An option of the request, repeatable; `--help` lists them
          --token-counter <NAME>  What counts the tokens for max_output_tokens [possible values: chars4,
                                  json_chars]

    Decision model (what is given here wins over the environment):
          --model <BACKEND>      Who decides [env: DECISION_MODEL_BACKEND] [default: rules, offline]
                                 [possible values: rules, agentscope, typesafe]
          --base-url <URL>       Where the decision model is served [env: DECISION_MODEL_BASE_URL]
          --model-name <NAME>    The model's name at its provider [env: DECISION_MODEL_NAME]
          --question <TEMPLATE>  The wording of the questions [default: criteria] [possible values:
                                 plain, criteria]

    Output:
          --json             Print the answer as JSON; the default unless standard output is a terminal
      -o <FILE>              Write the answer to a file
          --messages <FILE>  Write only the messages to a file; `-` prints them
          --explain          Print a table that explains every decision; the default on a terminal

    Examples:
      ratoon compact run.json
      ratoon compact run.json --messages small.json --option preserve_recent_messages=2
      ratoon compact request.json --model agentscope -o answer.json
      agent --dump | ratoon compact - --json | jq .stats
    --- stderr
    ");
    insta::assert_snapshot!(place.shown("recover --help"), @"
    exit 0
    --- stdout
    Print the original of a cut result, exactly as it was

    Usage: ratoon recover [OPTIONS] <REF>

    Arguments:
      <REF>  The reference in the excerpt's last line: FILE#CALL_ID

    Options:
          --lines <A:B>     Only the lines A to B, counted from 1; either end may be left out
          --grep <PATTERN>  Only the lines that match this regular expression, with their numbers
      -h, --help            Print help

    Examples:
      ratoon recover 'run.json#call_7'
      ratoon recover 'run.json#call_7' --lines 100:140
      ratoon recover 'run.json#call_7' --grep '(?i)error'
    --- stderr
    ");
}

#[test]
fn the_long_help_lists_every_option_of_a_request() {
    let help = Place::new().shown("compact --help");
    let listed = help.split_once("Options of a request").unwrap().1;
    insta::assert_snapshot!(listed, @"
    , with their defaults:
      drop_threshold=0.1            cut what is needed with at most this probability
      preserve_recent_messages=6    keep the results of so many newest messages or steps
      preview_chars=300             characters of the excerpt that stays
      max_output_tokens=null        stop cutting when so many tokens are left; needs a token counter
      evidence_chars=2000           characters of a result that the decision model sees
      max_state_tokens=25000        estimated tokens of the evidence in one request
      max_request_tokens=30000      estimated tokens of one request
      max_concurrency=4             requests at a time, at most 32
      total_timeout_seconds=30      for everything; what has no answer by then is kept
      profile=contract              recommended for bare messages: turns the next four on
      recent_unit=message           or step: one turn of the agent, however it is stored
      protect_unread=false          keep results that the agent has not answered yet
      skip_unshortenable=false      ask no questions about results that cannot get shorter
      keep_output_shape=false       a list of text blocks stays a list

    Environment, also read from .env in this directory or the nearest one above it:
      DECISION_MODEL_BACKEND        as --model
      DECISION_MODEL_NAME           as --model-name
      DECISION_MODEL_BASE_URL       as --base-url
      DECISION_MODEL_API_KEY        the key of the decision model; there is no option for it
      NO_COLOR                      no colours

    Exit codes:
      0 done, also if nothing could be cut; 1 failed; 2 wrong usage or invalid request; 130 interrupted

    Examples:
      ratoon compact run.json
      ratoon compact run.json --messages small.json --option preserve_recent_messages=2
      ratoon compact request.json --model agentscope -o answer.json
      agent --dump | ratoon compact - --json | jq .stats
    --- stderr
    ");
}

#[test]
fn completions_for_every_shell() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = place.ratoon(&format!("completions {shell}")).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && script.contains("next-action"), "{shell}");
    }
    assert!(place.shown("--version").contains(concat!("ratoon ", env!("CARGO_PKG_VERSION"), "\n")));
}
