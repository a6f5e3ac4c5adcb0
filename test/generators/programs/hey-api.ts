import { client } from './client/client.gen.ts'
import { type Card, type Problem, walletsGet, walletsTransfer } from './client/index.ts'

const [, , baseUrl = '', key = ''] = process.argv
client.setConfig({ baseUrl, auth: () => key })
const { data, error } = await walletsGet()
if (data === undefined) throw new Error(error.detail)
const refused = await walletsTransfer({
  body: { amount: '1', token: 'USDC', chain: 'base-sepolia', destination: '0x12' },
})
const problem: Problem | undefined = refused.error
const status: Card['status'] = 'active'
process.stdout.write(JSON.stringify({ address: data.safeAddress, refused: problem?.code, status }))
