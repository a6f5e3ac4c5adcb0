#!/usr/bin/env node
/**
 * The command line, and the joint of everything: config → runtime → tools → http, /mcp and jobs. The only src file that
 * imports tools/ or mcp/. Commands load what they need and nothing else: a local agent's process starts in a blink.
 */
import { parseArgs } from 'node:util'
import { VERSION } from './base/version.ts'

const help = `Bursar: the gateway that lets AI agents spend money, under a policy that holds.

Usage: bursar <command> [options]

  serve                                    start the gateway (sandbox mode by default)
  mcp --url URL --key FILE                 MCP server on standard input and output, for a local agent
  agent new --name NAME --out FILE         make an agent's key pair; prints the public part
  agent sign --key FILE METHOD PATH        print the headers that sign a request  [--url URL] [--data JSON]
  agent call --key FILE METHOD PATH        sign a request and send it             [--url URL] [--data JSON]
  migrate                                  apply missing migrations to DATABASE_URL or DATA_DIR
  audit verify                             verify decisions and journal  [--from-export FILE] [--jwks FILE] [--journal-head HASH]
  audit export --out FILE                  write the chain as JSON Lines, to be kept elsewhere
  admin grant ACCOUNT                      make a sandbox account an administrator; the gateway may have to be stopped
  doctor                                   look at all that the gateway needs, and say what to do  [--json]
  help, version                            this text, and which Bursar this is

The configuration comes from environment variables (PORT, MODE, DATABASE_URL, …): see docs/configuration.md.
`

const options = {
  url: { type: 'string' },
  key: { type: 'string' },
  name: { type: 'string' },
  out: { type: 'string' },
  data: { type: 'string' },
  jwks: { type: 'string' },
  'from-export': { type: 'string' },
  'journal-head': { type: 'string' },
  'idempotency-key': { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const

/** Runs a command line. @returns the exit code. @throws Error whose message is for a person. */
async function main(argv: readonly string[]): Promise<number> {
  // Every file that a command makes may hold secrets or personal data: it is its user's alone.
  process.umask(0o077)
  const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true })
  const [command = 'help', ...rest] = positionals
  if (values.version === true || command === 'version') return print(`${VERSION}\n`)
  if (values.help === true || command === 'help') return print(help)
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
    case 'admin':
      return (await import('./commands/admin.ts')).admin(rest, process.env)
    case 'audit':
      return (await import('./commands/audit.ts')).audit(rest, values, process.env)
    case 'agent':
      return (await import('./commands/agent.ts')).agent(rest, values)
    case 'mcp': {
      const [{ readKeyFile }, { urlOf }, { serveStdio }] = await Promise.all([
        import('./commands/key-file.ts'),
        import('./commands/url-of.ts'),
        import('../mcp/stdio.ts'),
      ])
      await serveStdio({
        url: urlOf(required(values.url, '--url')).origin,
        key: readKeyFile(required(values.key, '--key')),
      })
      return 0
    }
    default:
      process.stderr.write(`bursar: there is no command "${command}". Try "bursar help".\n`)
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

/** Ends the process once all is written: a part that did not answer or close in time would keep it alive. */
function exit(code: number): Promise<never> {
  return new Promise(() => process.stdout.write('', () => process.exit(code)))
}

function print(text: string): number {
  process.stdout.write(text)
  return 0
}

function required(value: string | undefined, option: string): string {
  if (value === undefined) throw new Error(`${option} is missing. Try "bursar help".`)
  return value
}

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code
  },
  (error: unknown) => {
    // What a command had started before it failed (a chain, a database) must not keep the process alive.
    process.stderr.write(`bursar: ${error instanceof Error ? error.message : String(error)}\n`, () =>
      process.exit(1),
    )
  },
)
