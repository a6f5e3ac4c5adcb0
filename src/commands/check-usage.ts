/** Refuses options and arguments that a command does not have: ignored, `migrate --dry-run` would migrate. */
import { type Command, commands, type OptionName } from './table.ts'

/**
 * @param words the command and its arguments. @param given names of the options.
 * @throws TypeError as `parseArgs` does for an option that no command has. Commands without their second word explain themselves.
 */
export function checkUsage(words: readonly string[], given: readonly string[]): void {
  const [room = 'serve', action] = words
  const command =
    commands.find(({ name }) => name === `${room} ${action}`) ?? commands.find(({ name }) => name === room)
  if (command === undefined) return
  const { name, parameters, required = [], optional = [] } = command
  const known: readonly OptionName[] = [...required, ...optional]
  const option = given.find((one) => !known.some((other) => other === one))
  if (option !== undefined) refuse(`--${option}`, command)
  const argument = words[name.split(' ').length]
  if (argument !== undefined && parameters === undefined) refuse(argument, command)
}

function refuse(word: string, { name }: Command): never {
  throw Object.assign(new TypeError(`"${word}" is no option of ${name}. Try "bursar ${name} --help".`), {
    code: 'ERR_PARSE_ARGS_UNKNOWN_OPTION',
  })
}
