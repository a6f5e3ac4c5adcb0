/** The floor: a bare Hono route that takes the same JSON and returns some, in a process of its own. */
import { serve } from '@hono/node-server'
import { Hono } from 'hono'

const app = new Hono()
app.post('/api/wallets/transfer', async (c) => {
  const { amount } = await c.req.json<{ amount: string }>()
  return c.json({ status: 'confirmed', amount })
})
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => {
  process.stdout.write(`is up at http://127.0.0.1:${port}\n`)
})
