import createClient from 'openapi-fetch'
import type { components, paths } from './api.ts'

const [, , baseUrl = '', key = ''] = process.argv
const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${key}` } })
const { data, error } = await client.GET('/api/wallets')
if (data === undefined) throw new Error(error.detail)
const refused = await client.POST('/api/wallets/transfer', {
  body: { amount: '1', token: 'USDC', chain: 'base-sepolia', destination: '0x12' },
})
const policy: components['schemas']['Policy'] = {
  currency: 'USD',
  perTransaction: { max: '5' },
  dailyBudget: { max: '20' },
  categories: { allow: ['transfer'] },
}
process.stdout.write(
  JSON.stringify({ address: data.safeAddress, refused: refused.error?.code, max: policy.perTransaction.max }),
)
