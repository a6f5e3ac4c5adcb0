/** Startup banner. */
import type { Services } from '../kernel/context.ts'
import type { Chain } from '../providers/chain/port.ts'
import type { AbsentPart } from './absent-parts.ts'

const nameChain = ({ name, rpcUrl }: Chain) =>
  rpcUrl === null ? `${name}, simulated` : `${name} at ${rpcUrl}`

/**
 * In the sandbox it ends with a request that works as pasted, in production with what is missing. @property absent parts
 * that this production runs without. @property hasAdmin whether anybody is its administrator.
 */
export function banner(
  { settings, sandbox, chains }: Services,
  { isColoured, absent, hasAdmin }: { isColoured: boolean; absent: readonly AbsentPart[]; hasAdmin: boolean },
): string {
  const paint = (code: number, text: string) => (isColoured ? `\u001b[${code}m${text}\u001b[0m` : text)
  const strong = (text: string) => paint(1, text)
  const paintFaint = (text: string) => paint(2, text)
  // The node of production may have a key in its URL.
  const places = chains.all.map((chain) => (settings.mode === 'production' ? chain.name : nameChain(chain)))
  const lines = [
    '',
    `${strong('Bursar')} is up at ${strong(settings.origin)} ${paintFaint(`(${settings.mode}, chain ${places.join(', ')})`)}`,
    `${paintFaint('Sign in')}          ${settings.origin}/sign-in`,
    `${paintFaint('API description')}  ${settings.origin}/api/openapi.json`,
    `${paintFaint('Documentation')}    ${settings.origin}/docs`,
    `${paintFaint('MCP server')}       ${settings.origin}/mcp`,
  ]
  if (sandbox === null) {
    const missing = [
      ...(hasAdmin
        ? []
        : ['no administrator: rails stay off (bursar admin grant --email ADDRESS, after one sign-in)']),
      ...absent.map(({ part, consequence, variable }) => `no ${part}: ${consequence} (${variable})`),
    ]
    const block = missing.length === 0 ? [] : ['', strong('Without:'), ...missing.map((line) => `  ${line}`)]
    return `${[...lines, ...block].join('\n')}\n\n`
  }
  return `${[
    ...lines,
    `${paintFaint('Demo API key')}     ${sandbox.demoApiKey}`,
    '',
    'Send 1.25 USDC on the sandbox chain:',
    '',
    `  curl -s ${settings.origin}/api/wallets/transfer \\`,
    `    -H 'Authorization: Bearer ${sandbox.demoApiKey}' \\`,
    "    -H 'Content-Type: application/json' -H 'Idempotency-Key: first-transfer' \\",
    `    -d '{"destination":"0x000000000000000000000000000000000000dEaD","amount":"1.25","signature":"sandbox"}'`,
    '',
    paintFaint('The demo key may spend 25 USD per payment and 100 USD per day. Stop with Ctrl+C.'),
  ].join('\n')}\n\n`
}
