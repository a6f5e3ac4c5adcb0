/** Commands that connect an agent by OAuth, with this gateway's address. */
import { useState } from 'preact/hooks'
import { deployment } from '../data/account.ts'
import { Copy, Segments } from './controls.tsx'

const clients = [
  ['claude', 'Claude Code'],
  ['cursor', 'Cursor'],
  ['vscode', 'VS Code'],
] as const

type Client = (typeof clients)[number][0]

export function ConnectCommands() {
  const [client, choose] = useState<Client>('claude')
  const url = `${deployment.origin}/mcp`
  const text: Record<Client, string> = {
    claude: `claude mcp add --transport http bursar ${url}`,
    cursor: JSON.stringify({ mcpServers: { bursar: { url } } }),
    vscode: `code --add-mcp '${JSON.stringify({ name: 'bursar', type: 'http', url })}'`,
  }
  const say: Record<Client, string> = {
    claude: 'Run this, then /mcp, and say yes on the page that opens.',
    cursor: 'Put this into ~/.cursor/mcp.json, and say yes on the page that opens.',
    vscode: 'Run this, and say yes on the page that opens.',
  }
  return (
    <div class="stack stack--tight">
      <p>{say[client]}</p>
      <Segments label="Client" options={clients} value={client} choose={choose} />
      <Copy text={text[client]} what="the command" />
    </div>
  )
}
