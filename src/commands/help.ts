/** Help texts, written from the table of commands. */
import { type Command, commands, options, writtenOption } from './table.ts'

/** Text of `bursar help`. */
export function helpText(): string {
  const lines = commands.map((command) => [synopsis(command), command.about] as const)
  const width = 46
  const rows = lines.map(([left, about]) =>
    left.length < width - 1 ? `  ${left.padEnd(width)}${about}` : `  ${left}\n  ${' '.repeat(width)}${about}`,
  )
  return `Bursar: the gateway that lets AI agents spend money, under a policy that holds.

Usage: bursar [command] [options]; without a command it starts the gateway

${rows.join('\n')}

"bursar <command> --help" explains a command. The configuration of the gateway comes from environment variables
(PORT, MODE, DATABASE_URL, …): see docs/configuration.md.
`
}

/** Text of `bursar <command> --help`; of all commands that begin with the words. Undefined for an unknown command. */
export function findHelp(words: readonly string[]): string | undefined {
  const [room, action] = words
  const named = commands.filter(({ name }) => name === room || name === `${room} ${action}`)
  const found = named.length > 0 ? named : commands.filter(({ name }) => name.split(' ')[0] === room)
  return found.length === 0 ? undefined : found.map(explain).join('\n')
}

function synopsis({ name, parameters, required = [], optional = [] }: Command): string {
  return [
    name,
    ...required.map(writtenOption),
    ...(parameters === undefined ? [] : [parameters]),
    ...optional.map((option) => `[${writtenOption(option)}]`),
  ].join(' ')
}

function explain(command: Command): string {
  const { about, required = [], optional = [], details, examples = [] } = command
  const used = [...required, ...optional].map(
    (name) => `  ${writtenOption(name).padEnd(24)}${options[name].about}`,
  )
  return [
    `Usage: bursar ${synopsis(command)}`,
    '',
    `${about.charAt(0).toUpperCase()}${about.slice(1)}.${details === undefined ? '' : ` ${details}`}`,
    ...(used.length === 0 ? [] : ['', 'Options:', ...used]),
    ...(examples.length === 0 ? [] : ['', 'Examples:', ...examples.map((line) => `  ${line}`)]),
    '',
  ].join('\n')
}
