/**
 * The command line, which joins everything: config → runtime → tools → http, /mcp and jobs. The only src file that
 * imports tools/ or mcp/. Each command loads only the modules it needs, so that `bursar mcp` starts fast.
 */
import { parseArgs } from 'node:util'
import { checkUsage } from './commands/check-usage.ts'
import { findHelp, helpText } from './commands/help.ts'
import { options } from './commands/table.ts'
import { VERSION } from './core/base/version.ts'

/** @returns the exit code. @throws Error with a user-facing message. */
async function main(argv: readonly string[]): Promise<number> {
  // Files created by commands may hold secrets or personal data, so only their user may read them.
  process.umask(0o077)
  const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true })
  const [command = 'serve', ...rest] = positionals
  if (values.help === true) return print(findHelp(positionals) ?? helpText())
  if (values.version === true || command === 'version') return print(`${VERSION}\n`)
  if (command === 'help') return print(findHelp(rest) ?? helpText())
  checkUsage(positionals, Object.keys(values))
  switch (command) {
    case 'serve':
      return exit(await serve())
    case 'migrate':
      return (await import('./commands/migrate.ts')).migrate(process.env)
    case 'doctor': {
      const code = await (await import('./commands/doctor.ts')).doctor(
        process.env,
        {
          isJson: values.json === true,
          isColoured: process.stdout.isTTY && process.env.NO_COLOR === undefined,
        },
        print,
      )
      return exit(code)
    }
    case 'chain':
      return exit(await (await import('./commands/chain.ts')).chain(rest, values, process.env))
    case 'admin':
      return (await import('./commands/admin.ts')).admin(rest, values, process.env)
    case 'backup':
      return (await import('./commands/backup.ts')).backup(requireOption(values.out, '--out'), process.env)
    case 'restore': {
      const [file, other] = rest
      if (other !== undefined)
        throw new Error('One backup is restored at a time. Try "bursar restore --help".')
      return (await import('./commands/backup.ts')).restore(requireOption(file, 'FILE'), process.env)
    }
    case 'keys':
      return (await import('./commands/keys.ts')).keys(rest, values, process.env)
    case 'audit':
      return (await import('./commands/audit.ts')).audit(rest, values, process.env)
    case 'export':
      return (await import('./commands/export.ts')).exportBooks(rest, values, process.env)
    case 'archive':
      return (await import('./commands/archive.ts')).archive(rest, values, process.env)
    case 'login':
    case 'logout': {
      const commands = await import('./commands/login.ts')
      return commands[command](values, process.env)
    }
    case 'listen':
      return exit(await (await import('./commands/listen.ts')).listen(values, process.env))
    case 'trigger':
      return exit(await (await import('./commands/trigger.ts')).trigger(rest, values, process.env))
    case 'statement':
      return exit(await (await import('./commands/statement.ts')).statement(rest, values, process.env))
    case 'completion':
      return print((await import('./commands/completion.ts')).completion(rest))
    case 'run':
      return (await import('./commands/run.ts')).run(rest, values)
    case 'proxy':
      return exit(await (await import('./commands/proxy/proxy.ts')).proxy(rest, values, process.env))
    case 'agent':
      return (await import('./commands/agent.ts')).agent(rest, values)
    case 'mcp': {
      const [{ readKeyFile }, { parseUrl }, { serveStdio }] = await Promise.all([
        import('./commands/key-file.ts'),
        import('./commands/parse-url.ts'),
        import('../mcp/stdio.ts'),
      ])
      await serveStdio({
        url: parseUrl(requireOption(values.url, '--url')).origin,
        key: readKeyFile(requireOption(values.key, '--key')),
        toolsets: values.toolsets ?? null,
      })
      return 0
    }
    default:
      process.stderr.write(`bursar: unknown command "${command}". Try "bursar help".\n`)
      return 2
  }
}

async function serve(): Promise<number> {
  const [{ serve }, { tools }, { mcpHandler }] = await Promise.all([
    import('./commands/serve.ts'),
    import('../tools/index.ts'),
    import('../mcp/http.ts'),
  ])
  return serve(process.env, { tools, mcpHandler })
}

/** Exits once all output is written: a dependency that did not close in time would keep the process alive. */
function exit(code: number): Promise<never> {
  return new Promise(() => process.stdout.write('', () => process.exit(code)))
}

function print(text: string): number {
  process.stdout.write(text)
  return 0
}

function requireOption(value: string | undefined, option: string): string {
  if (value === undefined) throw new Error(`${option} is missing. Try "bursar help".`)
  return value
}

// Whoever read what is told here has gone. What is done goes on: a key is revoked, a purchase is ended.
process.stderr.on('error', () => {})
process.stdout.on('error', () => {})

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code
  },
  (error: unknown) => {
    // Dependencies started before the failure (a chain, a database) must not keep the process alive.
    // `bursar run` hands on the codes of its program, so that its own are those of sysexits.h.
    const isMisused = process.argv[2] === 'run' && error instanceof TypeError && 'code' in error
    process.stderr.write(`bursar: ${error instanceof Error ? error.message : String(error)}\n`, () =>
      process.exit(isMisused ? 64 : 1),
    )
  },
)
