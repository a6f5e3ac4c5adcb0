/** The table of tools in `docs/agents.md`. `npm run client` writes it. */
import { readFileSync } from 'node:fs'
import { tools } from '../../tools/index.ts'

export const TABLE_FILE = 'docs/agents.md'

/** Operations that a key may call and that are no tools, with the reason. */
const withoutTool: Readonly<Record<string, string>> = {
  'agents.keys.tree': '`agents_delegations_list` has the same keys, in pages',
  'purchases.response': '`purchases_get` has the first 256 KiB of an answer',
  'swaps.orders.list': '`activity_list` has the same swaps',
  'wallets.transfer_intent': 'a key needs no signature for its transfers',
}

/** The file with the table of today. @throws Error for an operation of keys that is neither a tool nor has a reason. */
export function withTable(): string {
  const forKeys = tools.filter(({ who, mcp }) => mcp || who === 'account')
  const untold = forKeys.find(({ name, mcp }) => !mcp && !(name in withoutTool))
  if (untold !== undefined) throw new Error(`${untold.name} is no tool: say why in withoutTool`)
  const findRoom = ({ name }: { readonly name: string }) => name.split('.')[0] ?? name
  const served = forKeys.filter(({ mcp }) => mcp)
  const rooms = [...new Set(served.map(findRoom))].sort()
  const rows = rooms.map((room) => {
    const named = served
      .filter((tool) => findRoom(tool) === room)
      .map(({ name, title }) => `\`${name.replaceAll('.', '_')}\` (${title.toLowerCase()})`)
    return `| \`${room}\` | ${named.sort().join(', ')} |`
  })
  const reasons = Object.entries(withoutTool).map(([name, why]) => `\`${name.replaceAll('.', '_')}\`: ${why}`)
  const table = ['| room | tools |', '|---|---|', ...rows, '', `No tools: ${reasons.join('; ')}.`].join('\n')
  return readFileSync(TABLE_FILE, 'utf8').replace(
    /(?<=<!-- tools -->\n)[\s\S]*(?=\n<!-- \/tools -->)/,
    () => table,
  )
}
