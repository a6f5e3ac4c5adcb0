import { Bursar, BursarProblem, type Card } from 'bursar/client'

const [, , url = '', apiKey = ''] = process.argv
const bursar = new Bursar({ url, apiKey })
const { safeAddress: address } = await bursar.wallets.get()
const status: Card['status'] = 'active'
const refused = await bursar.wallets
  .transfer({ amount: '1', token: 'USDC', destination: '0x12' })
  .catch((error: unknown) => (error instanceof BursarProblem ? error.code : 'unexpected'))
process.stdout.write(JSON.stringify({ address, refused, status }))
