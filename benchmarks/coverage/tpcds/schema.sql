CREATE TABLE date_dim (d_date_sk INTEGER PRIMARY KEY, d_date DATE NOT NULL, d_month_seq INTEGER NOT NULL,
  d_week_seq INTEGER NOT NULL, d_year INTEGER NOT NULL, d_dow INTEGER NOT NULL, d_moy INTEGER NOT NULL,
  d_dom INTEGER NOT NULL, d_qoy INTEGER NOT NULL, d_day_name VARCHAR NOT NULL, d_quarter_name VARCHAR NOT NULL);
CREATE TABLE time_dim (t_time_sk INTEGER PRIMARY KEY, t_hour INTEGER NOT NULL, t_minute INTEGER NOT NULL,
  t_meal_time VARCHAR);
CREATE TABLE item (i_item_sk INTEGER PRIMARY KEY, i_item_id VARCHAR NOT NULL, i_item_desc VARCHAR,
  i_current_price DECIMAL(7, 2), i_wholesale_cost DECIMAL(7, 2), i_brand_id INTEGER, i_brand VARCHAR,
  i_class VARCHAR, i_category_id INTEGER, i_category VARCHAR, i_manufact_id INTEGER, i_manufact VARCHAR, i_size VARCHAR,
  i_color VARCHAR, i_units VARCHAR, i_manager_id INTEGER);
CREATE TABLE store (s_store_sk INTEGER PRIMARY KEY, s_store_id VARCHAR NOT NULL, s_store_name VARCHAR,
  s_number_employees INTEGER, s_floor_space INTEGER, s_hours VARCHAR, s_manager VARCHAR, s_market_id INTEGER,
  s_city VARCHAR, s_county VARCHAR, s_state VARCHAR, s_zip VARCHAR, s_gmt_offset DECIMAL(5, 2));
CREATE TABLE call_center (cc_call_center_sk INTEGER PRIMARY KEY, cc_name VARCHAR, cc_manager VARCHAR, cc_county VARCHAR);
CREATE TABLE web_site (web_site_sk INTEGER PRIMARY KEY, web_site_id VARCHAR NOT NULL, web_name VARCHAR,
  web_company_name VARCHAR);
CREATE TABLE web_page (wp_web_page_sk INTEGER PRIMARY KEY, wp_char_count INTEGER, wp_type VARCHAR);
CREATE TABLE warehouse (w_warehouse_sk INTEGER PRIMARY KEY, w_warehouse_name VARCHAR, w_warehouse_sq_ft INTEGER,
  w_city VARCHAR, w_state VARCHAR, w_country VARCHAR);
CREATE TABLE ship_mode (sm_ship_mode_sk INTEGER PRIMARY KEY, sm_type VARCHAR, sm_carrier VARCHAR);
CREATE TABLE reason (r_reason_sk INTEGER PRIMARY KEY, r_reason_desc VARCHAR);
CREATE TABLE promotion (p_promo_sk INTEGER PRIMARY KEY, p_channel_email VARCHAR, p_channel_event VARCHAR,
  p_channel_tv VARCHAR);
CREATE TABLE income_band (ib_income_band_sk INTEGER PRIMARY KEY, ib_lower_bound INTEGER, ib_upper_bound INTEGER);
CREATE TABLE household_demographics (hd_demo_sk INTEGER PRIMARY KEY,
  hd_income_band_sk INTEGER REFERENCES income_band (ib_income_band_sk), hd_buy_potential VARCHAR, hd_dep_count INTEGER,
  hd_vehicle_count INTEGER);
CREATE TABLE customer_demographics (cd_demo_sk INTEGER PRIMARY KEY, cd_gender VARCHAR, cd_marital_status VARCHAR,
  cd_education_status VARCHAR, cd_purchase_estimate INTEGER, cd_credit_rating VARCHAR, cd_dep_count INTEGER);
CREATE TABLE customer_address (ca_address_sk INTEGER PRIMARY KEY, ca_city VARCHAR, ca_county VARCHAR, ca_state VARCHAR,
  ca_zip VARCHAR, ca_country VARCHAR, ca_gmt_offset DECIMAL(5, 2), ca_location_type VARCHAR);
CREATE TABLE customer (c_customer_sk INTEGER PRIMARY KEY, c_customer_id VARCHAR NOT NULL,
  c_current_cdemo_sk INTEGER REFERENCES customer_demographics (cd_demo_sk),
  c_current_hdemo_sk INTEGER REFERENCES household_demographics (hd_demo_sk),
  c_current_addr_sk INTEGER REFERENCES customer_address (ca_address_sk), c_first_name VARCHAR, c_last_name VARCHAR,
  c_preferred_cust_flag VARCHAR, c_birth_month INTEGER, c_birth_year INTEGER, c_birth_country VARCHAR);
CREATE TABLE inventory (inv_date_sk INTEGER NOT NULL REFERENCES date_dim (d_date_sk),
  inv_item_sk INTEGER NOT NULL REFERENCES item (i_item_sk),
  inv_warehouse_sk INTEGER NOT NULL REFERENCES warehouse (w_warehouse_sk), inv_quantity_on_hand INTEGER);
CREATE TABLE store_sales (ss_sold_date_sk INTEGER REFERENCES date_dim (d_date_sk),
  ss_sold_time_sk INTEGER REFERENCES time_dim (t_time_sk), ss_item_sk INTEGER NOT NULL REFERENCES item (i_item_sk),
  ss_customer_sk INTEGER NOT NULL REFERENCES customer (c_customer_sk),
  ss_cdemo_sk INTEGER REFERENCES customer_demographics (cd_demo_sk),
  ss_hdemo_sk INTEGER REFERENCES household_demographics (hd_demo_sk),
  ss_addr_sk INTEGER REFERENCES customer_address (ca_address_sk), ss_store_sk INTEGER REFERENCES store (s_store_sk),
  ss_promo_sk INTEGER REFERENCES promotion (p_promo_sk), ss_ticket_number INTEGER NOT NULL, ss_quantity INTEGER,
  ss_wholesale_cost DECIMAL(7, 2), ss_list_price DECIMAL(7, 2), ss_sales_price DECIMAL(7, 2),
  ss_ext_sales_price DECIMAL(7, 2), ss_ext_list_price DECIMAL(7, 2), ss_ext_discount_amt DECIMAL(7, 2),
  ss_coupon_amt DECIMAL(7, 2), ss_net_paid DECIMAL(7, 2), ss_net_profit DECIMAL(7, 2));
CREATE TABLE store_returns (sr_returned_date_sk INTEGER REFERENCES date_dim (d_date_sk),
  sr_item_sk INTEGER NOT NULL REFERENCES item (i_item_sk),
  sr_customer_sk INTEGER NOT NULL REFERENCES customer (c_customer_sk), sr_store_sk INTEGER REFERENCES store (s_store_sk),
  sr_reason_sk INTEGER REFERENCES reason (r_reason_sk), sr_ticket_number INTEGER NOT NULL, sr_return_quantity INTEGER,
  sr_return_amt DECIMAL(7, 2), sr_net_loss DECIMAL(7, 2));
CREATE TABLE catalog_sales (cs_sold_date_sk INTEGER REFERENCES date_dim (d_date_sk),
  cs_ship_date_sk INTEGER REFERENCES date_dim (d_date_sk),
  cs_bill_customer_sk INTEGER NOT NULL REFERENCES customer (c_customer_sk),
  cs_bill_cdemo_sk INTEGER REFERENCES customer_demographics (cd_demo_sk),
  cs_item_sk INTEGER NOT NULL REFERENCES item (i_item_sk),
  cs_call_center_sk INTEGER REFERENCES call_center (cc_call_center_sk),
  cs_ship_mode_sk INTEGER REFERENCES ship_mode (sm_ship_mode_sk),
  cs_warehouse_sk INTEGER REFERENCES warehouse (w_warehouse_sk), cs_promo_sk INTEGER REFERENCES promotion (p_promo_sk),
  cs_order_number INTEGER NOT NULL, cs_quantity INTEGER, cs_list_price DECIMAL(7, 2), cs_sales_price DECIMAL(7, 2),
  cs_ext_sales_price DECIMAL(7, 2), cs_ext_discount_amt DECIMAL(7, 2), cs_ext_ship_cost DECIMAL(7, 2),
  cs_coupon_amt DECIMAL(7, 2), cs_net_profit DECIMAL(7, 2));
CREATE TABLE catalog_returns (cr_returned_date_sk INTEGER REFERENCES date_dim (d_date_sk),
  cr_item_sk INTEGER NOT NULL REFERENCES item (i_item_sk),
  cr_returning_customer_sk INTEGER NOT NULL REFERENCES customer (c_customer_sk),
  cr_call_center_sk INTEGER REFERENCES call_center (cc_call_center_sk), cr_order_number INTEGER NOT NULL,
  cr_return_quantity INTEGER, cr_return_amount DECIMAL(7, 2), cr_net_loss DECIMAL(7, 2));
CREATE TABLE web_sales (ws_sold_date_sk INTEGER REFERENCES date_dim (d_date_sk),
  ws_sold_time_sk INTEGER REFERENCES time_dim (t_time_sk), ws_ship_date_sk INTEGER REFERENCES date_dim (d_date_sk),
  ws_item_sk INTEGER NOT NULL REFERENCES item (i_item_sk),
  ws_bill_customer_sk INTEGER NOT NULL REFERENCES customer (c_customer_sk),
  ws_web_page_sk INTEGER REFERENCES web_page (wp_web_page_sk), ws_web_site_sk INTEGER REFERENCES web_site (web_site_sk),
  ws_ship_mode_sk INTEGER REFERENCES ship_mode (sm_ship_mode_sk),
  ws_warehouse_sk INTEGER REFERENCES warehouse (w_warehouse_sk), ws_order_number INTEGER NOT NULL, ws_quantity INTEGER,
  ws_sales_price DECIMAL(7, 2), ws_ext_sales_price DECIMAL(7, 2), ws_ext_discount_amt DECIMAL(7, 2),
  ws_ext_ship_cost DECIMAL(7, 2), ws_net_paid DECIMAL(7, 2), ws_net_profit DECIMAL(7, 2));
CREATE TABLE web_returns (wr_returned_date_sk INTEGER REFERENCES date_dim (d_date_sk),
  wr_item_sk INTEGER NOT NULL REFERENCES item (i_item_sk),
  wr_returning_customer_sk INTEGER NOT NULL REFERENCES customer (c_customer_sk),
  wr_reason_sk INTEGER REFERENCES reason (r_reason_sk), wr_order_number INTEGER NOT NULL, wr_return_quantity INTEGER,
  wr_return_amt DECIMAL(7, 2), wr_net_loss DECIMAL(7, 2));
